"""Linear Road end to end: a small city, its history, a drive at a speed-up, all five answers on Spark, and the oracle's verdict.

`make demo` runs it. A city of one expressway is generated and its minutes around an accident are cut out; the driver brings them three
times faster than real time; the network tracks vehicles, finds accidents, sets tolls, keeps accounts and looks up the
past; then an independent oracle works out every right answer and compares.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from penstock.cli.lr.run import follow, show
from penstock.linear_road.report import read_road, run_page, write_page
from penstock.linear_road.run.output_folder import RunPlan
from penstock.linear_road.traffic.generate import generate
from penstock.linear_road.traffic.history import History, history
from penstock.linear_road.validate import Verdict, validate
from penstock.linear_road.validate import show as show_verdict

SEED = 7
MINUTES = 31
BEGIN, END = 1500, 1740
"""With this seed two vehicles collide at second 1517 and block a lane until the end of what is driven."""

SPEED = 3.0
DAYS = 7


def cut(city: Path, rows: Path) -> int:
    """The rows of the seconds driven, as one flat file; gives their number."""
    count = 0
    with rows.open("w") as out:
        for file in sorted(city.glob("rows-*.csv")):
            for line in file.open():
                if BEGIN <= int(line.split(",", 2)[1]) < END:
                    out.write(line)
                    count += 1
    return count


def main(folder: Path) -> bool:
    """Run it and say what happens; whether every answer was right. A busy machine may make some late: the table says so."""
    bold = sys.stdout.isatty()
    say = lambda text: print(f"\n\033[1m{text}\033[0m" if bold else f"\n{text}", flush=True)  # noqa: E731
    begun = time.monotonic()
    say(f"1. A small city: one expressway, {MINUTES} minutes of traffic, and {DAYS} days of history")
    made = generate(folder / "city", xways=1, minutes=MINUTES, seed=SEED, jobs=1)
    rows = folder / "rows.csv"
    taken = cut(folder / "city", rows)
    print(
        f"{made['vehicles']:,} vehicles, {made['rows']:,} tuples; seconds {BEGIN}..{END - 1} are driven: {taken:,} tuples"
    )
    history(History(rows, folder / "history", days=DAYS), workers=1)
    say(f"2. Driving it at {SPEED:g} times real time through the network on Spark (it warms up first)")
    record = follow(RunPlan(rows, folder / "run", folder / "history", speed=SPEED))
    show(record, folder / "run")
    say("3. The oracle works out every right answer and compares")
    verdict = validate(rows, answers=folder / "run", history=folder / "history")
    show_verdict(verdict, Console(width=None if bold else 160, soft_wrap=True))
    page = run_page(
        record,
        verdict=verdict.as_json(),
        road=read_road(rows, folder / "run" / "answers.csv"),
        title="Linear Road",
    )
    write_page(folder / "report.html", page)
    print(f"\nreport with plots and a map of the road: {folder / 'report.html'}")
    print(f"{time.monotonic() - begun:.0f} s in all")
    _next(folder, rows, verdict)
    return not any(result.wrong or result.missing or result.extra for result in verdict.results)


def _next(folder: Path, rows: Path, verdict: Verdict) -> None:
    lr = ".venv/bin/penstock lr"
    fault = next((fault for result in verdict.results for fault in result.faults), None)
    vid, at = (fault.key.get("vid"), fault.key.get("time")) if fault else (None, None)
    print("\nTry next (without a Java of your own: export JAVA_HOME=$(scripts/java.sh) first):")
    print(f"  {lr} validate --input {rows} --history {folder / 'history'} --why {vid or 284},{at or 1517}")
    print(f"  {lr} generate --xways 2 --minutes 20 --out out/city")
    print(f"  {lr} run --input out/city --out out/run --speed 10     # Ctrl-C, and again: it goes on")
    print(
        f"  {lr} rate --from 1 --to 4 --base 1 --minutes 3 --out out/rating      # your machine's L, in real time"
    )
    print(f"  .venv/bin/penstock dead-letters {folder / 'run' / '_checkpoint'}")
    print(
        "  .venv/bin/python examples/sensors.py         # another network: connection points and ad-hoc queries"
    )
    print("  docs/linear-road.md                          # the network, the run, the rating")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.gettempdir()) / "penstock-demo"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    sys.exit(0 if main(target) else 1)
