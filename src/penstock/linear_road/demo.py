"""The demo: a small city, its history, a drive, all five kinds of answers on Spark, and the oracle's verdict.

The demo generates a city of one expressway and cuts out the minutes around an accident. The driver delivers
them faster than real time. The network tracks vehicles, finds accidents, sets tolls, keeps accounts and looks
up the past. Then an independent oracle computes every right answer and compares. Only the installed package
is needed.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from penstock.linear_road.errors import InputError, RunError
from penstock.linear_road.network.road import road_network
from penstock.linear_road.report import read_road, run_page, write_page
from penstock.linear_road.report.live_view import run_with_live_view
from penstock.linear_road.report.validity import doubt
from penstock.linear_road.run.plan import RunPlan
from penstock.linear_road.run.record import RunRecord
from penstock.linear_road.run.run_folder import CHECKPOINT, RunFolder
from penstock.linear_road.traffic.generate import generate
from penstock.linear_road.traffic.history import HistoryPlan, history
from penstock.linear_road.validate import Verdict, show, validate
from penstock.store.durable import make_directory, open_text

_MARK = ".penstock-demo"
"""A file that says: a demo made this folder, so the next demo may remove it."""

_SEED, _MINUTES = 7, 31
_BEGIN, _END = 1500, 1740
"""With this seed two vehicles collide at second 1517 and block a lane until the end of what is driven."""

_WHY = "284,1517"
"""A vehicle and a second for `validate --why`: one of the two that collide."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Demo:
    """Where the demo writes, how fast it drives, and how many days of history it has."""

    out: Path
    speed: float = 3.0
    days: int = 7

    @classmethod
    def short(cls, out: Path) -> Demo:
        """The same city and minutes without a clock: as fast as possible, so nothing can be late."""
        return cls(out, speed=math.inf, days=1)

    @property
    def city(self) -> Path:
        return self.out / "city"

    @property
    def rows(self) -> Path:
        return self.out / "rows.csv"

    @property
    def history(self) -> Path:
        return self.out / "history"

    @property
    def run(self) -> Path:
        return self.out / "run"

    @property
    def report(self) -> Path:
        return self.out / "report.html"


def run_demo(demo: Demo, say: Say = print) -> bool:
    """Run the demo and report progress; returns whether every answer was right.

    A busy machine may make some answers late. The table says so, but the demo still succeeds.
    """
    began = time.monotonic()
    _make_folder(demo.out)
    days = "1 day" if demo.days == 1 else f"{demo.days} days"
    say(f"1. A small city: one expressway, {_MINUTES} minutes of traffic, {days} of history")
    say(_generate(demo))
    pace = f"at {demo.speed:g} times real time" if math.isfinite(demo.speed) else "at maximum speed"
    say(f"\n2. Driving it {pace} through the network on Spark (it warms up first)")
    record = _drive(demo)
    say("\n3. The oracle works out every right answer and compares")
    verdict = validate(demo.rows, answers=demo.run, history=demo.history)
    show(verdict, Console(width=None if sys.stdout.isatty() else 160, soft_wrap=True))
    if (why := doubt(record)) is not None:
        say(f"\n{why}")
    _write_report(demo, record, verdict)
    say(f"\nReport with plots and a map of the road: {demo.report}")
    say(f"{time.monotonic() - began:.0f} s in all")
    for line in _next_commands(demo, verdict):
        say(line)
    return not any(result.wrong or result.missing or result.extra for result in verdict.results)


def _make_folder(out: Path) -> None:
    """Make an empty folder; remove what an earlier demo left, refuse anything else."""
    if (out / _MARK).is_file():
        shutil.rmtree(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} holds something else than an earlier demo", hint="choose another --out")
    make_directory(out)
    (out / _MARK).touch()


def _generate(demo: Demo) -> str:
    traffic = generate(demo.city, xways=1, minutes=_MINUTES, seed=_SEED)
    driven = _cut(demo.city, demo.rows)
    history(HistoryPlan(demo.rows, demo.history, days=demo.days), workers=1)
    return (
        f"{traffic['vehicles']:,} vehicles, {traffic['rows']:,} tuples; "
        f"seconds {_BEGIN}..{_END - 1} are driven: {driven:,} tuples"
    )


def _cut(city: Path, rows: Path) -> int:
    """Write the rows of the seconds that are driven as one flat file; returns their number."""
    count = 0
    with open_text(rows) as out:
        for line in _lines(city):
            if _BEGIN <= int(line.split(",", 2)[1]) < _END:
                out.write(line)
                count += 1
    return count


def _lines(city: Path) -> Iterator[str]:
    for file in sorted(city.glob("rows-*.csv")):
        with file.open(encoding="utf-8") as stream:
            yield from stream


def _drive(demo: Demo) -> RunRecord:
    record = run_with_live_view(RunPlan(demo.rows, demo.run, demo.history, speed=demo.speed))
    if not record["finished"]:
        raise RunError("the demo was stopped before all was driven")
    return record


def _write_report(demo: Demo, record: RunRecord, verdict: Verdict) -> None:
    road = read_road(demo.rows, demo.run / "answers.csv")
    folder = RunFolder(demo.run, demo.run / CHECKPOINT)
    network = road_network(demo.history, folder.feed, folder.parts, speed=demo.speed)
    page = run_page(record, verdict=verdict.as_json(), road=road, network=network, title="Linear Road")
    write_page(demo.report, page)


def _next_commands(demo: Demo, verdict: Verdict) -> Iterator[str]:
    fault = next((fault for result in verdict.results for fault in result.faults), None)
    why = f"{fault.key.get('vid')},{fault.key.get('time')}" if fault and "vid" in fault.key else _WHY
    yield "\nTry next:"
    yield f"  {_program()} lr validate --input {demo.rows} --history {demo.history} --why {why}"
    yield f"  {_program()} console {demo.run / CHECKPOINT} --open   # this run in a browser"
    yield f"  {_program()} lr generate --xways 2 --minutes 20 --out city"
    yield f"  {_program()} lr run --input city --out run --speed 10   # Ctrl-C, and again: it resumes"


def _program() -> str:
    """How to call this installation: by name, or by path if the name is not on the PATH."""
    beside = Path(sys.executable).with_name("penstock")
    on_path = shutil.which("penstock")
    if on_path is not None and Path(on_path) == beside:
        return "penstock"
    return str(beside) if beside.is_file() else f"{sys.executable} -m penstock.cli.main"
