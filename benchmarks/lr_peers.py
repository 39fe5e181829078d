"""What Linear Road costs in other ways of doing it: processor seconds per million tuples, same input, one run.

    python benchmarks/lr_peers.py [--quick] [--seconds 120] [--xways L] [--only NAME ...]   # the table of ratios
    python benchmarks/lr_peers.py --rate system-x [--from 8] [--to 64] [--seconds 120] # the largest L of a peer in real time

Peers (`benchmarks/peers/`): the bare numba kernel, the DuckDB oracle in batch, an embedded SQL database polled once a second
("System X" today), PySpark with transformWithState keyed by vehicle (needs protobuf), and Penstock (`penstock lr run --max-speed`). The input is the
last seconds of three hours of one expressway: the busiest ones. Every peer's answers are validated; wrong ones end this with 1.
Two figures for each: all processor seconds of the process tree, and those after the first row came (without start and warm-up).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psutil
from rich.console import Console
from rich.table import Table

from common import tree
from lr_standin import write_result

PEERS = Path(__file__).parent / "peers"
KIT = [sys.executable, "-m", "penstock.cli.lr.commands"]
END = 10_800
NOT_SCORED = 30
"""In a window cut out of the three hours every vehicle seems new at first: so many seconds are checked but not timed."""


@dataclass(frozen=True)
class Setting:
    """Where everything lies: the cut, its history, and room for answers."""

    scratch: Path
    source: Path
    history: Path


def kit(*words: object, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command of the kit; a failure ends everything."""
    found = subprocess.run([*KIT, *map(str, words)], check=False, stderr=subprocess.PIPE, **more)
    if found.returncode:
        raise SystemExit(f"lr {words[0]} ended with {found.returncode}: {found.stderr.decode()[-500:]}")
    return found


def prepare(scratch: Path, xways: float, minutes: int, seconds: int, days: int) -> Setting:
    """Generate the traffic, cut out its last seconds as slices, make a history that any number of copies shares."""
    traffic, slices, history = (
        scratch / f"{name}-{xways:g}-{minutes}" for name in ("traffic", "slices", "history")
    )
    kit("generate", "--xways", xways, "--minutes", minutes, "--format", "parquet", "--out", traffic)
    begin = minutes * 60 - seconds
    kit("drive", "--input", traffic, "--from", begin, "--prepare", f"{slices}-{seconds}")
    kit("history", "--input", traffic, "--days", days, "--copies", 1000, "--out", history)
    return Setting(scratch, Path(f"{slices}-{seconds}"), history)


def flat(setting: Setting, length: float | None) -> Path:
    """The rows of a cut as one flat file, for so many expressways."""
    file = setting.scratch / f"rows-{length or 'one'}.dat"
    copies = ["--xways", length] if length else []
    with file.open("wb") as out:
        kit("drive", "--input", setting.source, "--speed", "max", "--to", "-", *copies, stdout=out)
    return file


def python_peer(name: str) -> Callable[[Setting, Path, Path], dict[str, Any]]:
    def run(setting: Setting, rows: Path, out: Path) -> dict[str, Any]:
        said = out.with_suffix(".json")
        command = [
            sys.executable,
            PEERS / f"{name}.py",
            "--input",
            rows,
            "--history",
            setting.history,
            "--out",
            out,
        ]
        ended = subprocess.run([*map(str, command), "--json", str(said)], check=False, stderr=subprocess.PIPE)
        if ended.returncode:
            raise SystemExit(f"{name} ended with {ended.returncode}: {ended.stderr.decode()[-500:]}")
        return dict(json.loads(said.read_text(encoding="utf-8")))

    return run


def oracle(setting: Setting, rows: Path, out: Path) -> dict[str, Any]:
    """The validator's own answers; it is one batch, so all of its work comes after the first row."""
    began = time.perf_counter()
    command = [*KIT, "validate", "--input", rows, "--history", setting.history, "--expected", out]
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit("the oracle failed")
    cpu = round(used.ru_utime + used.ru_stime, 2)
    return {"cpu_s": cpu, "cpu_s_after_start": cpu, "wall_s": round(time.perf_counter() - began, 2)}


def used_by(pid: int) -> dict[int, float]:
    """Processor seconds of a process and of all that it has started, so far."""
    found: dict[int, float] = {}
    with contextlib.suppress(psutil.NoSuchProcess):
        for each in tree(pid):
            used = each.cpu_times()
            found[each.pid] = used.user + used.system
    return found


def penstock(setting: Setting, rows: Path, out: Path) -> dict[str, Any]:
    """Penstock itself, state persisted, at maximum speed."""
    place = setting.scratch / f"penstock-run-{time.time_ns()}"
    began = time.perf_counter()
    command = ["run", "--input", rows, "--history", setting.history, "--max-speed", "--quiet", "--out", place]
    process = subprocess.Popen(
        [*KIT, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    cpu: dict[int, float] = {}
    while process.poll() is None:
        # Nobody waits for the JVM, so the kernel does not add it to its parent: what each process had when last seen.
        cpu |= used_by(process.pid)
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"lr run failed with {process.returncode}")
    record = json.loads((place / "run.json").read_text(encoding="utf-8"))
    if not record["cost"]:
        raise SystemExit("lr run was over before its cost could be sampled; take more --seconds")
    (place / "answers.csv").replace(out)
    return {
        "cpu_s": round(sum(cpu.values()), 2),
        "cpu_s_after_start": record["cost"]["cpu_s"],
        "wall_s": record["cost"]["wall_s"],
        "wall_s_in_all": round(time.perf_counter() - began, 2),
    }


WAYS: dict[str, Callable[[Setting, Path, Path], dict[str, Any]]] = {
    "kernel": python_peer("kernel"),
    "oracle": oracle,
    "penstock": penstock,
    "system-x": python_peer("system_x"),
    "spark-vehicles": python_peer("spark_vehicles"),
}


def right(setting: Setting, rows: Path, answers: Path) -> bool:
    """Whether every answer holds, response times aside."""
    words = [
        "validate",
        "--input",
        rows,
        "--history",
        setting.history,
        "--answers",
        answers,
        "--no-response-times",
    ]
    found = subprocess.run([*KIT, *map(str, words)], check=False, stdout=subprocess.PIPE)
    if found.returncode:
        print(found.stdout.decode()[:3000])
    return found.returncode == 0


def measure(setting: Setting, names: list[str], length: float | None) -> list[dict[str, Any]]:
    """Each way of doing it on the same rows."""
    rows = flat(setting, length)
    tuples = sum(1 for _ in rows.open("rb"))
    found = []
    for name in names:
        try:
            found.append(one(setting, name, rows, tuples))
        except SystemExit as error:
            # A failure is a result too, and the others are still worth having.
            found.append({"peer": name, "tuples": tuples, "failed": str(error), "right": False})
        print(json.dumps(found[-1]), file=sys.stderr)
    return found


def one(setting: Setting, name: str, rows: Path, tuples: int) -> dict[str, Any]:
    """Run and judge one peer."""
    out, load = setting.scratch / f"{name}.csv", round(os.getloadavg()[0], 2)
    figures = WAYS[name](setting, rows, out)
    per_million = {
        key.replace("cpu_s", "cpu_s_per_million"): round(figures[key] / tuples * 1e6, 3)
        for key in ("cpu_s", "cpu_s_after_start")
    }
    answers_hold = right(setting, rows, out)
    return {"peer": name, "tuples": tuples, **figures, **per_million, "load": load, "right": answers_hold}


def show(found: list[dict[str, Any]]) -> None:
    for row in found:
        if "failed" in row:
            print(f"{row['peer']} FAILED: {row['failed']}")
    figures = [row for row in found if "failed" not in row]
    least = min((row["cpu_s_per_million_after_start"] for row in figures), default=0) or 1e-3
    reference = next((r["cpu_s_per_million_after_start"] for r in figures if r["peer"] == "penstock"), None)
    table = Table(title="CPU-seconds per million tuples")
    for name in ("peer", "after start", "in all", "/ least", "/ penstock", "answers"):
        table.add_column(name, justify="left" if name == "peer" else "right")
    for row in figures:
        cost = row["cpu_s_per_million_after_start"]
        beside = "-" if reference is None else f"{cost / reference:.3g}"
        cells = (f"{cost:,}", f"{row['cpu_s_per_million']:,}", f"{cost / least:,.3g}", beside)
        table.add_row(row["peer"], *cells, "right" if row["right"] else "WRONG")
    Console(width=100).print(table)


def late(answers: Path, scored_from: int) -> tuple[int, dict[str, float]]:
    """How many scored answers came late, and the response times of the tolls."""
    rows = f"""(SELECT column0 AS kind, CASE column0 WHEN 0 THEN column3 - column2 ELSE column2 - column1 END AS wait,
                       CASE column0 WHEN 0 THEN column2 ELSE column1 END AS time
                FROM read_csv('{answers}', header = false, auto_detect = false, delim = ',', null_padding = true,
                     columns = {{{", ".join(f"'column{i}': 'DOUBLE'" for i in range(6))}}}) )"""
    found = (
        duckdb.connect()
        .execute(f"""
        SELECT count(*) FILTER (wait > CASE kind WHEN 3 THEN 10 WHEN 4 THEN 30 ELSE 5 END),
               quantile_disc(wait, 0.5) FILTER (kind = 0), quantile_disc(wait, 0.99) FILTER (kind = 0), max(wait) FILTER (kind = 0)
        FROM {rows} WHERE time >= {scored_from}""")
        .fetchone()
    )
    assert found is not None
    return int(found[0]), {
        name: round(v or 0, 3) for name, v in zip(("p50", "p99", "max"), found[1:], strict=True)
    }


def trial(setting: Setting, name: str, length: float, scored_from: int) -> dict[str, Any]:
    """One run in real time: the peer warm and waiting, the driver on the same machine."""
    rows, out = flat(setting, length), setting.scratch / f"{name}-{length:g}.csv"
    with tempfile.TemporaryDirectory(dir=setting.scratch) as place:
        fed, ready = Path(place) / "fed", Path(place) / "ready"
        fed.mkdir()
        words = [
            PEERS / f"{name.replace('-', '_')}.py",
            "--follow",
            fed,
            "--history",
            setting.history,
            "--out",
            out,
        ]
        said = Path(place) / "cost.json"
        peer = subprocess.Popen(
            [sys.executable, *map(str, words), "--ready", str(ready), "--json", str(said)],
            stderr=subprocess.DEVNULL,
        )
        while not ready.exists() and peer.poll() is None:
            time.sleep(0.2)
        drive = [
            "drive",
            "--input",
            setting.source,
            "--xways",
            length,
            "--to",
            fed,
            "--json",
            Path(place) / "drive.json",
        ]
        driver = subprocess.run([*KIT, *map(str, drive)], check=False, stderr=subprocess.DEVNULL)
        code = _wait(peer, 120)
        cost = json.loads(said.read_text(encoding="utf-8")) if said.exists() else {}
    if code or driver.returncode:
        return {"L": length, "pass": False, "why": f"peer ended with {code}, driver with {driver.returncode}"}
    count, waits = late(out, scored_from)
    holds = right(setting, rows, out)
    return {
        "L": length,
        "pass": holds and not count,
        "late": count,
        "right": holds,
        "tolls": waits,
        "cost": cost,
    }


def _wait(peer: subprocess.Popen[bytes], seconds: float) -> int:
    """A peer that is far behind when the driver has ended is not waited for."""
    try:
        return peer.wait(seconds)
    except subprocess.TimeoutExpired:
        peer.kill()
        peer.wait()
        return -9


def rate(setting: Setting, name: str, begin: float, end: float, scored_from: int) -> list[dict[str, Any]]:
    """Doubling from `begin` until a trial fails, then halving the gap, down to a tenth or half an expressway."""
    trials: list[dict[str, Any]] = []
    good, bad, length = 0.0, None, begin
    while length:
        try:
            trials.append(trial(setting, name, length, scored_from))
        except KeyboardInterrupt:
            # What was found so far is worth keeping; the search is not at its end.
            return [*trials, {"L": length, "pass": False, "why": "the search was stopped here"}]
        print(json.dumps(trials[-1]), file=sys.stderr)
        good, bad = (length, bad) if trials[-1]["pass"] else (good, length)
        length = following(good, bad, length, end)
    return trials


def following(good: float, bad: float | None, last: float, end: float) -> float:
    """The L to try next; 0 ends the search.

    >>> following(8, None, 8, 64), following(8, 16, 16, 64), following(8, 8.5, 8.5, 64), following(0, 0.5, 0.5, 64)
    (16, 12.0, 0, 0)
    """
    if bad is None:
        return min(2 * last, end) if last < end else 0
    step = max(0.5, round(good / 10 * 2) / 2)
    middle = math.floor(good + bad) / 2
    return middle if bad - good > step and middle not in (good, bad) and middle > 0 else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the 10th minute of a quiet morning")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--only", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--xways", type=float, help="shifted copies up to so many expressways, for the table")
    parser.add_argument("--rate", choices=("system-x", "spark-vehicles"))
    parser.add_argument("--from", dest="begin", type=float, default=0.5)
    parser.add_argument("--to", dest="end", type=float, default=64)
    parser.add_argument("--scratch", type=Path, help="kept, and used again")
    chosen = parser.parse_args()
    minutes, seconds = (10, 60) if chosen.quick else (180, chosen.seconds)
    with tempfile.TemporaryDirectory(prefix="penstock-peers-") as temporary:
        scratch = chosen.scratch or Path(temporary)
        scratch.mkdir(exist_ok=True)
        # Ratings go in steps of half an expressway, so they copy half an expressway.
        setting = prepare(scratch, 0.5 if chosen.rate else 1, minutes, seconds, chosen.days)
        config = {
            "quick": chosen.quick,
            "minutes": minutes,
            "seconds": seconds,
            "days": chosen.days,
            "seed": 1,
        }
        if chosen.rate:
            found = rate(setting, chosen.rate, chosen.begin, chosen.end, minutes * 60 - seconds + NOT_SCORED)
            best = max((t["L"] for t in found if t["pass"]), default=0)
            print(f"{chosen.rate}: L = {best:g}")
            print(write_result(f"lr-peers-{chosen.rate}", {**config, "rating": best}, found))
            return 0
        found = measure(setting, chosen.only, chosen.xways)
        config["xways"] = chosen.xways or 1
    show(found)
    print(write_result("lr-peers", config, found))
    return int(not all(row["right"] for row in found))


if __name__ == "__main__":
    sys.exit(main())
