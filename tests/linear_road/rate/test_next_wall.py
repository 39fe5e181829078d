"""Where the next wall is, what brackets a rating, and what the machine did meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.linear_road.rate.next_wall import next_wall
from penstock.linear_road.rate.plan import RatePlan, Window
from penstock.linear_road.rate.rating import crashed, shortened
from penstock.linear_road.rate.search import NextTrial, is_next
from penstock.linear_road.run.machine_state import MachineState, machine_state
from penstock.linear_road.run.rating_record import Trial
from penstock.linear_road.run.response_times import ResponseTimes


def failed(length: float, **figures: Any) -> Trial:
    trial = crashed(NextTrial("try", length), Window(0, 60, 120), "", 1.0)
    trial |= {"crashed": None, "late": 7, "wrong": 0, **figures}  # type: ignore[typeddict-item]
    return trial


def sample(t: float, stolen: float, faults: int, dirty: float) -> dict[str, float]:
    return {"t": t, "wall": t, "stolen_s": stolen, "major_faults": faults, "dirty_mb": dirty}


def train(second: int, ran: float, boxes: float) -> dict[str, float]:
    phases = {"job_s": ran, "read_s": 0.1, "boxes_s": boxes, "write_s": 0.04, "state_s": 0.02}
    return {"second": second, "rows": 1000, "waited_s": 0.1, "ran_s": ran, **phases}


def test_the_smallest_failure_tells_where_the_wall_is() -> None:
    samples = [sample(30, 0, 0, 900), sample(60, 1, 10, 5), sample(70, 3, 40, 80), sample(80, 5, 50, 20)]
    trains = [train(20, 9.0, 1.0), train(70, 0.4, 0.3), train(71, 6.0, 0.5), train(72, 0.5, 0.3)]
    series = {"samples": samples, "trains": trains}
    wall = next_wall([failed(600), failed(420, series=series, cost={"cores": 1.5, "backlog_s": 8.25})], 400)
    assert wall is not None
    assert wall["L"] == 420
    rest = "reading 0.10 s, writing 0.04 s, state 0.02 s"
    assert wall["why"] == [
        "7 scored answers were late",
        "1.50 cores were in use",
        "the backlog grew to 8.2 s",
        "others took 0.20 cores from the machine",
        "2.0 pages a second were read from disk, up to 80 MB waited to be written",
        f"the longest train: 6.00 s for 1,000 tuples, of which boxes 0.50 s, {rest}",
        f"the median train: 0.50 s for 1,000 tuples, of which boxes 0.30 s, {rest}",
    ]


def test_what_was_void_or_below_is_no_wall() -> None:
    assert next_wall([failed(500, void="the driver fell behind"), failed(300)], 400) is None
    wall = next_wall([failed(500, crashed="exit code 1: no memory")], 400)
    assert wall == {"L": 500, "why": ["the run crashed: exit code 1: no memory"]}


def test_a_rating_says_whether_it_is_bracketed(tmp_path: Path) -> None:
    class Set:
        base, cut = 5.0, Window(0, 60, 120)

        def copies(self, _length: float) -> tuple[int, float]:
            return 1, 0.0

    def told(wall: float | None, speed: float = 1.0) -> list[str]:
        plan = RatePlan(tmp_path, speed=speed)
        found = None if wall is None else {"L": wall, "why": []}
        return shortened(plan, Set(), 400, found)  # type: ignore[arg-type]

    assert "no larger L has failed: the largest one was not looked for" in told(None)
    assert "between L = 400 and 520, which failed, nothing was tried" in told(520)
    assert not any("failed" in sentence for sentence in told(420))
    assert any("3 times as fast as real time" in sentence for sentence in told(420, 3.0))
    assert is_next(0.5, 1)


def test_the_machine_is_read_from_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  1 2 3 4 5 6 7 250 9 10\ncpu0 1\n")
    (tmp_path / "vmstat").write_text("pgfault 9\npgmajfault 12\n")
    (tmp_path / "meminfo").write_text("Dirty: 3000 kB\nWriteback: 1000 kB\nHugePages_Total: 0\n")
    found = machine_state(tmp_path)
    assert (found.major_faults, found.dirty_mb) == (12, 4.0)
    assert found.stolen_s is not None
    assert found.stolen_s > 0
    assert machine_state(tmp_path / "nowhere") == MachineState()


def test_the_warm_up_is_told_though_it_is_not_timed() -> None:
    responses = ResponseTimes(scored_from=60)
    responses.add(b"0,1,10,10.400,-1,0\n2,20,26.010,20,4,900\n0,1,70,90.000,-1,0\n")
    assert responses.before_scored(0) == {"answers": 2, "slowest_s": 6.05, "late": 1}
    assert responses.before_scored(30) == {"answers": 0, "slowest_s": None, "late": 0}
