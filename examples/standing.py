"""Standing queries on a road: register once, ask whenever you like, over reports from before and after.

.venv/bin/python examples/standing.py

The same network can be served to other programs: penstock standing serve examples/standing.py:net
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import penstock as ps
from penstock.standing import QueryError, StandingQueries

PLACE = Path("out/standing")
START = 1_767_225_600  # 2026-01-01 00:00:00 UTC

net = ps.Network("road")
schema = "time TIMESTAMP, vid INT, spd INT, seg INT"
# `write` renames files into place, so they need not settle; served alone, the network waits for them.
cars = net.source("cars", ps.csv(str(PLACE / "cars"), schema=schema, settle="0", wait=True), timestamp="time")
cars.connection_point("reports", keep="2 hours")
fines = net.source(
    "fines",
    ps.csv(str(PLACE / "fines"), schema="time TIMESTAMP, vid INT, amount INT", settle="0", wait=True),
    timestamp="time",
)
fines.connection_point("fined", keep="2 hours")


def write(name: str, first: int, rows: list[tuple[int, ...]]) -> None:
    """A file appears whole."""
    (PLACE / name).mkdir(parents=True, exist_ok=True)
    aside = PLACE / name / f".{first}"
    aside.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    aside.rename(PLACE / name / f"{first:06d}.csv")


def drive(first: int, seconds: int) -> None:
    """Hundred cars report every ten seconds; in segments 40 to 60 they crawl.

    Whoever is too fast is fined.
    """
    dice = random.Random(first)
    reports = []
    for second in range(first, first + seconds, 10):
        for vid in range(100):
            crawl = 40 <= vid <= 60
            reports.append(
                (START + second, vid, dice.randint(5, 25) if crawl else dice.randint(50, 120), vid)
            )
    write("cars", first, reports)
    write("fines", first, [(t, vid, spd - 100) for t, vid, spd, _ in reports if spd > 115])


def main() -> None:
    shutil.rmtree(PLACE, ignore_errors=True)
    drive(0, 600)
    with ps.Runtime(net, checkpoint=PLACE / "checkpoint") as runtime:
        runtime.wait_idle()
        service = StandingQueries(runtime)
        slow = service.register(
            "SELECT vid, spd FROM reports WHERE spd < 20 AND seg BETWEEN 40 AND 60 "
            "BEGIN now - 1 minute END now"
        )
        mean = service.register(
            "SELECT COUNT(*) AS n, AVG(spd) AS mean FROM reports WHERE seg = 50 BEGIN now - 5 minutes END now"
        )
        caught = service.register(
            "SELECT DISTINCT r.vid, f.amount FROM reports r, fined f WHERE r.vid = f.vid AND r.spd > 115 "
            "BEGIN now - 30 seconds END now FOR r, BEGIN now - 10 minutes END now FOR f"
        )
        runtime.wait_idle()
        print(
            f"from before it was registered: {slow.invoke().num_rows} slow reports, "
            f"{mean.invoke().to_pylist()[0]}"
        )
        drive(600, 300)
        runtime.wait_idle()
        print(f"and from after: {slow.invoke().num_rows} slow reports, {mean.invoke().to_pylist()[0]}")
        print(f"a past window: {slow.invoke(at=START + 300.0).num_rows} slow reports")
        print(f"a join: {caught.invoke().num_rows} pairs of a fast report and a fine")
        try:
            service.register("SELECT vid FROM report WHERE spd < 20")
        except QueryError as error:
            print(f"refused: {error}")
        slow.unregister()
        service.stop()


if __name__ == "__main__":
    main()
