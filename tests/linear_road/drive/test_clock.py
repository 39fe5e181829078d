"""The clock of a run: a straight line that any process can read from a file."""

import json
import time
from types import SimpleNamespace

import pytest

from penstock.linear_road.drive import clock as clock_module
from penstock.linear_road.drive.clock import CLOCK_FILE, MAXIMUM, Clock
from penstock.linear_road.errors import ClockError


@pytest.fixture
def wall(monkeypatch):
    """Wall-clock time that passes when told."""
    wall = SimpleNamespace(now=5000.0)
    monkeypatch.setattr(clock_module, "time", SimpleNamespace(time=lambda: wall.now))
    return wall


def test_reads_t0_at_the_start_and_before_it():
    clock = Clock(start_wall=5000.0, t0=300, speed=4)
    assert clock.reading(5000.0) == 300
    assert clock.reading(4000.0) == 300
    assert clock.reading(5010.0) == 340


def test_due_is_the_inverse_of_reading():
    clock = Clock(start_wall=5000.0, t0=300, speed=4)
    assert clock.reading(clock.due(777)) == pytest.approx(777)


def test_now_follows_the_wall_clock_at_its_speed(wall):
    clock = Clock(wall.now, 100, 1000)
    assert clock.now() == 100
    wall.now += 0.5
    assert clock.now() == 600


def test_the_wall_clock_is_that_of_the_machine():
    before = time.time()
    reading = Clock(before - 5, 0, 1).now()
    assert 5 - 1e-6 <= reading <= time.time() - before + 5 + 1e-6


def test_another_process_reads_the_same_clock(tmp_path):
    clock = Clock(time.time(), 60, 10)
    clock.save(tmp_path / CLOCK_FILE)
    assert Clock.load(tmp_path) == clock == Clock.load(tmp_path / CLOCK_FILE)
    assert json.loads((tmp_path / CLOCK_FILE).read_text())["t0"] == 60


def test_a_paused_clock_stands_still_and_goes_on_where_it_stood(tmp_path, wall):
    paused = Clock(wall.now - 5, 0, 2).paused()
    paused.save(tmp_path / "c.json")
    wall.now += 3600
    loaded = Clock.load(tmp_path / "c.json")
    assert loaded.now() == paused.paused_at == 10
    resumed = loaded.resumed()
    assert resumed.now() == 10
    wall.now += 3
    assert resumed.now() == 16


def test_a_clock_that_was_not_paused_goes_on_through_a_crash():
    clock = Clock(time.time() - 100, 0, 1)
    assert clock.resumed() == clock


def test_maximum_speed_has_no_clock(tmp_path):
    clock = Clock(time.time(), 0, MAXIMUM)
    clock.save(tmp_path / "c.json")
    loaded = Clock.load(tmp_path / "c.json")
    assert not loaded.ticks
    with pytest.raises(ClockError, match="maximum speed has no clock\n  hint:     stamp Emit = Time"):
        loaded.now()


@pytest.mark.parametrize("speed", [0, -1, float("nan")])
def test_speed_must_be_above_zero(speed):
    with pytest.raises(ClockError, match="above 0"):
        Clock(0, 0, speed)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"start_wall": "x", "t0": 0, "speed": 1}'])
def test_a_broken_clock_file_is_said_to_be_broken(tmp_path, text):
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(ClockError, match="cannot be read"):
        Clock.load(tmp_path / "c.json")


def test_a_missing_clock_is_said_to_be_missing(tmp_path):
    with pytest.raises(ClockError, match="there is no clock at"):
        Clock.load(tmp_path)
