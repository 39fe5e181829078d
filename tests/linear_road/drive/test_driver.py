"""The driver: one clock, whole seconds, never early, never reordered, none dropped."""

import errno
import io
import json
import os
import signal
import socket
import struct
import threading
from dataclasses import fields, replace

import numpy as np
import pytest

from penstock.linear_road.drive import clock as clock_module
from penstock.linear_road.drive import driver as drive_module
from penstock.linear_road.drive import targets
from penstock.linear_road.drive.clock import CLOCK_FILE, MAXIMUM, Clock
from penstock.linear_road.drive.drive_report import STATE_FILE, DriveFigures, DriveReport, read_note
from penstock.linear_road.drive.driver import DrivePlan, drive, prepare_for
from penstock.linear_road.drive.targets import DirectoryTarget, StreamTarget, open_target
from penstock.linear_road.errors import InputError, TargetError
from penstock.linear_road.network.rows_in import decode
from penstock.model.formats.feed import LISTING
from penstock.process.stop_signal import StopSignal
from penstock.store import durable
from penstock.store.durable import FileLayer
from penstock.store.file_names import delivered_file

SECONDS = 12


def rows_of(first=0, seconds=SECONDS, xways=2):
    rows = []
    for t in range(first, first + seconds):
        if t == first + 5:
            continue  # a second without rows
        rows += [
            [0, t, 10 * v + t % 3, 40, v % xways, 1, v % 2, 2, 11000, -1, -1, -1, -1, -1, -1]
            for v in (4, 1, 3, 2)
        ]
        rows.append([2, t, 10, -1, -1, -1, -1, -1, -1, t, -1, -1, -1, -1, -1])
    return rows


class Wall:
    """Wall-clock time that passes when told: no machine is too busy for it."""

    def __init__(self):
        self.now, self.on_wait = 1_000_000.0, lambda: None

    def time(self):
        return self.now

    perf_counter = process_time = time


@pytest.fixture(autouse=True)
def wall(monkeypatch):
    """The driver and its clock go by this wall, and waiting for the next second is what moves it."""
    wall = Wall()

    class Stop(StopSignal):
        def wait(self, timeout):
            wall.on_wait()
            wall.now += 0.0 if self.is_set() else timeout
            return self.is_set()

    monkeypatch.setattr(drive_module, "StopSignal", Stop)
    monkeypatch.setattr(drive_module, "time", wall)
    monkeypatch.setattr(clock_module, "time", wall)
    return wall


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "rows.dat"
    file.write_text("".join(",".join(map(str, row)) + "\n" for row in rows_of()))
    return file


def text_of(folder):
    return "".join(file.read_text() for file in sorted(folder.glob("t*")))


def test_a_directory_gets_one_file_a_second_in_time_order(source, tmp_path):
    report = drive(DrivePlan(source, str(tmp_path / "to"), speed=50, most_late=50))
    names = sorted(file.name for file in (tmp_path / "to").glob("t*"))
    assert names == [delivered_file(t, 0, "csv") for t in range(SECONDS) if t != 5]
    assert text_of(tmp_path / "to") == source.read_text()
    assert report.rows == len(rows_of())
    assert report.valid
    assert not [file.name for file in (tmp_path / "to").iterdir() if file.name.startswith(".")]


class SlowTarget(StreamTarget):
    """A receiver that needs some time for each delivery; notes when each began."""

    def __init__(self, out, wall, seconds):
        super().__init__(out)
        self.wall, self.seconds, self.began = wall, seconds, []

    def deliver(self):
        self.began.append(self.wall.now)
        self.wall.now += self.seconds[len(self.began) % len(self.seconds)]
        super().deliver()


def test_nothing_is_early_and_lateness_is_what_was_measured(source, tmp_path, monkeypatch, wall):
    target = SlowTarget(io.BytesIO(), wall, [0.002, 0.002, 0.004])
    monkeypatch.setattr(drive_module, "open_target", lambda *_a, **_k: target)
    report = drive(DrivePlan(source, "-", speed=20, clock_file=tmp_path / "clock.json"))
    clock = Clock.load(tmp_path / "clock.json")
    assert (clock.t0, clock.speed) == (0, 20)
    assert target.began == [clock.due(t) for t in range(SECONDS)]
    assert report.lateness_ms is not None
    assert report.lateness_ms["p50"] == pytest.approx(2, rel=0.01)
    assert report.lateness_ms["p99"] == report.lateness_ms["max"] == pytest.approx(4, rel=0.01)


def test_the_run_takes_its_time(source, tmp_path, wall):
    began = wall.now
    drive(DrivePlan(source, str(tmp_path / "to"), speed=20, end=11))
    assert wall.now - began == pytest.approx(10 / 20)


def test_from_and_until_bound_the_seconds_and_t0(source, tmp_path):
    report = drive(DrivePlan(source, str(tmp_path / "to"), speed=100, begin=3, end=8))
    assert DirectoryTarget(tmp_path / "to").delivered() == [3, 4, 6, 7]
    assert Clock.load(tmp_path / "to").t0 == 3
    assert (report.t0, report.t1) == (3, 8)


def test_t0_is_the_first_second_of_the_input(tmp_path, wall):
    file = tmp_path / "rows.dat"
    file.write_text("".join(",".join(map(str, row)) + "\n" for row in rows_of(first=7000, seconds=3)))
    began = wall.now
    report = drive(DrivePlan(file, str(tmp_path / "to"), speed=10))
    assert report.t0 == 7000
    assert wall.now - began == pytest.approx(2 / 10), "it does not wait for the clock to come from 0 to 7000"


def test_standard_output_gets_the_same_bytes(source, monkeypatch):
    out = io.BytesIO()
    monkeypatch.setattr(drive_module, "open_target", lambda *_a, **_k: StreamTarget(out))
    drive(DrivePlan(source, "-", speed=100))
    assert out.getvalue() == source.read_bytes()


def receive(server, into):
    connection, _ = server.accept()
    with connection:
        while data := connection.recv(4096):
            into.append(data)


def test_tcp_gets_the_same_bytes_and_an_end(source):
    with socket.create_server(("127.0.0.1", 0)) as server:
        got = []
        reader = threading.Thread(target=receive, args=(server, got))
        reader.start()
        drive(DrivePlan(source, f"tcp://127.0.0.1:{server.getsockname()[1]}", speed=100))
        reader.join(60)
    assert b"".join(got) == source.read_bytes()


def hang_up(server, connected):
    connection, _ = server.accept()
    assert connected.wait(60)  # else the reset may come while the other end still connects
    # The other end knows it as soon as this returns: a reset is sent, not a polite end.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_a_receiver_that_goes_away_makes_the_run_invalid(tmp_path, wall):
    file = tmp_path / "rows.dat"
    file.write_text("".join(",".join(map(str, row)) + "\n" for row in rows_of(seconds=60)))
    said = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        connected = threading.Event()
        closer = threading.Thread(target=hang_up, args=(server, connected))
        closer.start()
        wall.on_wait = lambda: (connected.set(), closer.join())
        report = drive(
            DrivePlan(file, f"tcp://127.0.0.1:{server.getsockname()[1]}", speed=60), say=said.append
        )
    assert not report.valid
    assert "was lost at second" in str(report.lost)
    assert any("this run is not valid" in sentence for sentence in said)


def test_a_driver_that_falls_behind_says_so_drops_nothing_and_is_invalid(source, monkeypatch, wall):
    out, said = io.BytesIO(), []
    monkeypatch.setattr(drive_module, "open_target", lambda *_a, **_k: SlowTarget(out, wall, [0.05]))
    report = drive(DrivePlan(source, "-", speed=100), say=said.append)
    assert not report.valid
    assert (report.late_seconds, report.first_late) == (SECONDS - 1, 0)
    assert out.getvalue() == source.read_bytes()
    assert len([sentence for sentence in said if sentence.startswith("The driver fell behind: second")]) == 1


def test_what_counts_as_late_can_be_said(source, monkeypatch, wall):
    target = SlowTarget(io.BytesIO(), wall, [0.05])
    monkeypatch.setattr(drive_module, "open_target", lambda *_a, **_k: target)
    assert drive(DrivePlan(source, "-", speed=100, most_late=1000)).valid


def test_maximum_speed_has_no_clock_and_says_so(source, tmp_path):
    report = drive(DrivePlan(source, str(tmp_path / "to"), speed=MAXIMUM))
    assert report.lateness_ms is None
    assert report.speed == "max"
    assert "Emit = Time" in report.clock
    assert not Clock.load(tmp_path / "to").ticks
    assert text_of(tmp_path / "to") == source.read_text()


def test_the_clock_can_be_written_elsewhere(source, tmp_path):
    drive(DrivePlan(source, str(tmp_path / "to"), speed=100, clock_file=tmp_path / "clock.json"))
    assert Clock.load(tmp_path / "clock.json") == Clock.load(tmp_path / "to")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_prepared_slices_drive_the_same_rows_with_or_without_copies(source, tmp_path, form):
    plan = DrivePlan(source, groups=2, format=form, copies=2)
    prepare_for(plan, tmp_path / "with")
    prepare_for(DrivePlan(source, format=form), tmp_path / "without")
    one = drive(DrivePlan(tmp_path / "with", str(tmp_path / "a"), speed=MAXIMUM))
    two = drive(DrivePlan(tmp_path / "without", str(tmp_path / "b"), speed=MAXIMUM, copies=2, groups=2))
    three = drive(DrivePlan(source, str(tmp_path / "c"), speed=MAXIMUM, expressways=2, groups=2, format=form))
    files = [{file.name: file.read_bytes() for file in (tmp_path / x).glob("t*")} for x in "abc"]
    assert files[0] == files[1] == files[2]
    assert len(files[0]) == 2 * (SECONDS - 1)
    for report in (one, two, three):
        assert report.copies == {"count": 2, "vid": 43, "qid": 12, "xway": 2}
        assert report.xways == 2
        assert report.rows == 2 * len(rows_of())


def test_packed_delivery_has_the_rows_of_text_with_copies(source, tmp_path):
    prepare_for(DrivePlan(source, groups=2), tmp_path / "slices")
    for delivery in ("text", "packed"):
        plan = DrivePlan(tmp_path / "slices", str(tmp_path / delivery), MAXIMUM, copies=3, groups=2)
        report = drive(replace(plan, delivery=delivery))
        assert (report.rows, report.format) == (3 * len(rows_of()), {"text": "csv"}.get(delivery, delivery))
    listings = [
        [json.loads(line) for line in (tmp_path / name / LISTING).read_text().splitlines()]
        for name in ("text", "packed")
    ]
    for text, packed in zip(*listings, strict=True):
        assert [(group, rows) for _, group, _, rows in text["files"]] == [
            (group, rows) for _, group, _, rows in packed["files"]
        ]
        for one, other in zip(text["files"], packed["files"], strict=True):
            plain = decode((tmp_path / "text" / one[0]).read_bytes(), text["at"])[0]
            columns = decode((tmp_path / "packed" / other[0]).read_bytes(), text["at"])[0]
            assert all(np.array_equal(plain[name], columns[name]) for name in plain)
    with pytest.raises(TargetError, match="takes text only\n  hint:     packed can be driven to a directory"):
        drive(DrivePlan(source, "-", MAXIMUM, delivery="packed"))


def test_slices_in_another_format_are_refused(source, tmp_path):
    prepare_for(DrivePlan(source), tmp_path / "p")
    with pytest.raises(InputError, match="are csv\n  hint:     --format parquet needs another --prepare"):
        drive(DrivePlan(tmp_path / "p", str(tmp_path / "to"), format="parquet"))


def test_seconds_outside_the_slices_are_refused(source, tmp_path):
    prepare_for(DrivePlan(source, begin=4), tmp_path / "p")
    with pytest.raises(InputError, match=r"--from 2 is outside .*\n  expected: a second of 4\.\.11"):
        drive(DrivePlan(tmp_path / "p", str(tmp_path / "to"), begin=2))


def test_lenient_slices_need_lenient_driving(source, tmp_path):
    source.write_text("nonsense\n" + source.read_text())
    with pytest.raises(InputError, match=r"row 1 of rows\.dat breaks the format"):
        drive(DrivePlan(source, str(tmp_path / "to")))
    prepare_for(DrivePlan(source, lenient=True), tmp_path / "p")
    with pytest.raises(InputError, match="hold 1 rows that break the format\n  hint:     --lenient passes"):
        drive(DrivePlan(tmp_path / "p", str(tmp_path / "to")))
    with pytest.raises(InputError, match="which cannot be shifted"):
        drive(DrivePlan(tmp_path / "p", str(tmp_path / "to"), lenient=True, copies=2))
    report = drive(DrivePlan(tmp_path / "p", str(tmp_path / "to"), lenient=True, speed=MAXIMUM))
    assert text_of(tmp_path / "to") == source.read_text()
    assert report.refused_rows_passed_on == 1


def test_a_clean_stop_pauses_the_clock_and_a_resumed_drive_goes_on(source, tmp_path, wall):
    target = tmp_path / "to"
    prepare_for(DrivePlan(source), tmp_path / "p")
    wall.on_wait = lambda: (
        (target / delivered_file(3, 0, "csv")).exists() and signal.raise_signal(signal.SIGTERM)
    )
    first = drive(DrivePlan(tmp_path / "p", str(target), speed=20, most_late=5))
    assert first.stopped_at == 4
    assert not first.valid
    assert Clock.load(target).paused_at is not None
    assert not list(target.glob(".t*"))
    wall.now += 3600  # longer than a delivery may be late: only a paused clock forgives it
    wall.on_wait = lambda: None
    second = drive(DrivePlan(tmp_path / "p", str(target), speed=20, resume=True, most_late=5))
    assert second.valid
    assert text_of(target) == source.read_text()
    assert second.rows + first.rows == len(rows_of())
    assert Clock.load(target).paused_at is None


def test_after_a_crash_the_clock_has_gone_on_and_nothing_comes_twice(source, tmp_path, wall):
    target = tmp_path / "to"
    drive(DrivePlan(source, str(target), speed=100, end=6))
    Clock(wall.now - 1, 0, 100).save(target / CLOCK_FILE)
    (target / STATE_FILE).write_text(json.dumps({"next": 4, "report": None}))
    (target / ".t000006-g000.csv.tmp").write_text("half a row")
    before = {file: file.stat().st_mtime_ns for file in target.glob("t*")}
    report = drive(DrivePlan(source, str(target), speed=100, resume=True))
    assert text_of(target) == source.read_text()
    assert all(file.stat().st_mtime_ns == kept for file, kept in before.items())
    assert not report.valid, "what came after the crash came late"
    assert report.overdue_at_resume > 0
    assert report.late_seconds == 0, "the driver itself was not slow"
    assert not list(target.glob(".t*"))


@pytest.mark.parametrize("report", [None, {"late_seconds": 9, "valid": True}])
def test_what_an_earlier_attempt_was_behind_is_not_forgotten(source, tmp_path, report):
    target = tmp_path / "to"
    drive(DrivePlan(source, str(target), speed=100, end=6, most_late=100))
    behind = {"late_seconds": 2, "first_late": 1, "overdue": 3}
    (target / STATE_FILE).write_text(json.dumps({"next": 6, "behind": behind, "report": report}))
    Clock.load(target).paused().save(target / CLOCK_FILE)
    found = drive(DrivePlan(source, str(target), speed=100, resume=True, most_late=100))
    assert (found.late_seconds, found.first_late, found.overdue_at_resume) == (2, 1, 3)
    assert not found.valid
    assert read_note(target)["behind"] == behind


def test_what_was_overdue_at_a_clean_stop_is_so_afterwards(source, tmp_path, wall):
    target = tmp_path / "to"
    drive(DrivePlan(source, str(target), speed=100, end=6, most_late=100))
    (target / STATE_FILE).write_text(json.dumps({"next": 6, "report": None}))
    # Killed at second 6, gone on with at 500, stopped before anything went out.
    Clock(wall.now - 5, 0, 100).paused().save(target / CLOCK_FILE)
    report = drive(DrivePlan(source, str(target), speed=100, resume=True))
    assert (report.overdue_at_resume, report.late_seconds) == (SECONDS - 6, 0), "the driver was not slow"


def test_resuming_at_another_speed_is_refused(source, tmp_path):
    drive(DrivePlan(source, str(tmp_path / "to"), speed=100, end=2))
    with pytest.raises(InputError, match="runs at speed 100\n  hint:     --resume needs the same --speed"):
        drive(DrivePlan(source, str(tmp_path / "to"), speed=50, resume=True))


def test_a_full_disk_leaves_no_half_file_and_an_invalid_run(source, tmp_path, monkeypatch):
    real, writes = os.write, []

    def full(descriptor, data):
        writes.append(len(data))
        if len(writes) > 4:
            real(descriptor, data[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(targets.os, "write", full)
    report = drive(DrivePlan(source, str(tmp_path / "to"), speed=100))
    assert not report.valid
    assert "No space left on device" in str(report.lost)
    assert DirectoryTarget(tmp_path / "to").delivered() == [0, 1, 2, 3]
    assert not list((tmp_path / "to").glob(".t*"))


def test_a_list_that_was_cut_off_goes_on_with_a_whole_line(source, tmp_path):
    drive(DrivePlan(source, str(tmp_path / "to"), MAXIMUM, end=5))
    listing = tmp_path / "to" / LISTING
    with listing.open("ab") as file:
        file.write(b'{"at": 5, "fi')
    drive(DrivePlan(source, str(tmp_path / "to"), MAXIMUM, resume=True))
    seconds = [json.loads(line)["at"] for line in listing.read_text().splitlines()]
    assert sorted(set(seconds)) == list(range(SECONDS))


class _Flushes(FileLayer):
    def __init__(self) -> None:
        self.names: list[str] = []

    def sync_file(self, path):
        self.names.append(path.name)

    def sync_directory(self, path):
        self.names.append(f"{path.name}/")


def test_power_durability_flushes_rows_before_the_list_that_names_them(source, tmp_path, monkeypatch):
    flushes = _Flushes()
    monkeypatch.setattr(durable, "layer", flushes)
    drive(DrivePlan(source, str(tmp_path / "to"), MAXIMUM, end=2, durability="power"))
    first = flushes.names.index(LISTING)
    rows = [name for name in flushes.names[:first] if name.startswith(".t000000")]
    assert rows
    assert flushes.names[first - 1] == "to/"
    assert flushes.names.count(LISTING) == 2, "each second"


def test_a_used_directory_is_not_mixed_with_a_new_drive(source, tmp_path):
    drive(DrivePlan(source, str(tmp_path / "to"), speed=MAXIMUM))
    with pytest.raises(
        TargetError, match="already holds 11 delivered seconds\n  hint:     choose an empty directory, or --"
    ):
        drive(DrivePlan(source, str(tmp_path / "to"), speed=MAXIMUM))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("kafka://broker:9092/topic", "Kafka targets come later"),
        ("http://x", "is no target\n  expected: a directory, tcp://HOST:PORT or -"),
        ("tcp://host", "is no target"),
        ("tcp://host:port", "is no target"),
    ],
)
def test_targets_that_are_none(name, sentence):
    with pytest.raises(TargetError, match=sentence):
        open_target(name, "csv")


def test_targets_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TargetError, match="is a file\n  expected: a directory"):
        open_target(str(tmp_path / "file"), "csv")
    with pytest.raises(TargetError, match="takes text only"):
        open_target("-", "parquet")
    with pytest.raises(TargetError, match="--resume cannot go on with"):
        open_target("-", "csv", resume=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(TargetError, match="start the receiver first"):
        open_target(f"tcp://127.0.0.1:{port}", "csv")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"speed": 0}, "--speed 0 is not above 0"),
        ({"begin": -1}, "--from -1 is below 0"),
        ({"begin": 5, "end": 5}, "--until 5 is not after --from 5"),
        ({"copies": 2, "expressways": 2}, "say the same thing"),
        ({"groups": 0}, "--groups 0 is too few"),
    ],
)
def test_bad_options_are_refused(tmp_path, options, sentence):
    with pytest.raises(InputError, match=sentence):
        DrivePlan(tmp_path, "-", **options)


def test_the_report_and_its_json_have_the_same_fields():
    assert [f.name for f in fields(DriveReport)] == list(DriveFigures.__annotations__)
