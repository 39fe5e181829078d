"""Sensors in a cold store: a network with filter, window, join, a connection point and an ad-hoc query.

`make demo` runs it. Two sources: temperature readings, and doors that open. Warm minutes are joined with the
doors that were opened shortly before; the minutes are kept at a connection point, where a question of today
meets data of before.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import penstock as ps

START = 1_767_225_600  # 2026-01-01 00:00:00 UTC
MINUTES = 30
MADE = ("readings", "doors", "out", "checkpoint", "network.svg")
"""What a run leaves in its folder."""


def network(folder: Path) -> ps.Network:
    """The network, drawn over the files of a folder."""
    net = ps.Network("cold-store")
    readings = net.source(
        "readings",
        ps.csv(f"{folder}/readings", schema="time TIMESTAMP, sensor INT, celsius DOUBLE"),
        timestamp="time",
        lateness="5 seconds",
    ).about(description="one reading a second from each sensor")
    doors = net.source(
        "doors",
        ps.csv(f"{folder}/doors", schema="time TIMESTAMP, sensor INT, door STRING"),
        timestamp="time",
        idle="2 seconds",
    )
    with net.group("minutes", description="a row for each sensor and minute"):
        valid = readings.filter("celsius BETWEEN -60 AND 60", name="valid")
        minutes = valid.group_by("sensor").tumble(
            "1 minute", mean="avg(celsius)", top="max(celsius)", n="count(*)", name="minute"
        )
    kept = minutes.connection_point("minutes", keep="2 hours", key="sensor")
    warm = kept.filter("top > -15", name="above_15")
    suspects = warm.join(doors, on=["sensor"], within="2 minutes", name="opened_before")
    net.output(
        "warm", warm, to=ps.parquet(f"{folder}/out/warm"), qos=ps.QoS(delay=[(0, 1.0), (5, 1.0), (30, 0.0)])
    )
    net.output("suspects", suspects, to=ps.csv(f"{folder}/out/suspects", header=True))
    return net


def write_minute(folder: Path, minute: int, dice: random.Random) -> int:
    """One minute of made-up data, dropped into the folders as whole files; a few rows are rubbish."""
    rows, opened = [], []
    for second in range(60):
        at = START + minute * 60 + second
        for sensor in range(20):
            ajar = sensor == 7 and minute % 5 == 2 and second > 10
            rows.append(f"{at},{sensor},{-20 + dice.gauss(0, 1) + (8 if ajar else 0):.2f}")
        if minute % 5 == 2 and second == 10:
            opened.append(f"{at},7,north")
    rows[dice.randrange(len(rows))] = f"{START + minute * 60},sensor 3,cold"
    for name, lines in (("readings", rows), ("doors", opened)):
        if lines:
            file = folder / name / f"minute-{minute:04d}.csv"
            file.parent.mkdir(parents=True, exist_ok=True)
            aside = file.with_name("." + file.name)
            aside.write_text("\n".join(lines) + "\n")
            aside.rename(file)
    return len(rows) + len(opened)


def say(text: str) -> None:
    """Print a heading, in bold where a terminal can show that."""
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def make_room(folder: Path) -> None:
    """Remove what an earlier run has left in a folder, and nothing else; begin a checkpoint there."""
    if folder.exists() and not folder.is_dir():
        raise SystemExit(f"{folder} is no folder")
    left = [folder / name for name in MADE if (folder / name).exists()]
    if left and not (folder / "checkpoint").exists():
        raise SystemExit(f"{left[0]} is not of this example: give another folder")
    for path in left:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    (folder / "checkpoint").mkdir(parents=True, mode=0o700)


def main(folder: Path) -> None:
    """Run it end to end and say what happens."""
    dice = random.Random(1)
    net = network(folder)
    for name in ("readings", "doors"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "network.svg").write_text(net.to_svg())
    say("1. The network")
    print(net.explain())
    print(f"picture: {folder / 'network.svg'}")
    say(f"2. Starting Spark, {MINUTES // 2} minutes of readings lie there already")
    written = sum(write_minute(folder, m, dice) for m in range(MINUTES // 2))
    begun = time.monotonic()
    with ps.Runtime(net, checkpoint=folder / "checkpoint") as running:
        running.wait_idle(timeout=120)
        print(f"{written:,} rows taken in {time.monotonic() - begun:.1f} s, start of Spark included")
        say("3. A question of today about data of before: attach an ad-hoc query to the connection point")
        answers = ps.memory()
        running.attach(
            "how cold is 7",
            "minutes",
            lambda s: s.filter("sensor = 7").select("sensor", "time", "mean", "top"),
            to=answers,
        )
        running.wait_idle(timeout=60)
        history = len(answers.rows)
        print(
            f"it answers from history: {history} minutes of sensor 7, "
            f"the warmest {max(r['top'] for r in answers.rows):.1f} C"
        )
        say(f"4. {MINUTES // 2} more minutes arrive while everything runs")
        for minute in range(MINUTES // 2, MINUTES):
            written += write_minute(folder, minute, dice)
            time.sleep(0.1)
        running.wait_idle(timeout=120)
        times = [row["time"] for row in answers.rows]
        twice, missing = len(times) - len(set(times)), MINUTES - 1 - len(set(times))
        print(
            f"and goes on live: {len(times) - history} more, {twice or 'none'} twice, "
            f"{missing or 'none'} missing (the last minute is still open)"
        )
        running.detach("how cold is 7")
        status = running.status()
        say("5. What each box saw (native boxes are counted in a sample of the trains)")
        for name, count in status.boxes.items():
            print(f"  {name:<16} in {count.rows_in:>7,}  out {count.rows_out:>7,}  dead {count.dead:>3,}")
        for name, latency in status.latency.items():
            print(f"  {name:<16} latency p50 {latency.p50:.2f} s, max {latency.max:.2f} s")
    say("6. What came out")
    for line in sorted(
        line for f in (folder / "out/suspects").glob("*.csv") for line in f.read_text().splitlines()[1:]
    ):
        print("  suspect: " + line)
    print(
        f"\n{status.dead} rows were rubbish; they are in the dead letters:"
        f"  .venv/bin/penstock dead-letters {folder / 'checkpoint'}"
    )
    print("Next:")
    print(
        f"  penstock query {folder / 'checkpoint'} "
        '"SELECT sensor, avg(mean) FROM minutes GROUP BY sensor ORDER BY sensor"'
    )
    print("  .venv/bin/penstock explain examples/traffic.yaml        # a network as YAML")
    print("  docs/boxes.md                                 # every box with an example")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.gettempdir()) / "penstock-demo"
    make_room(target)
    main(target)
