"""Jams on a road: the ten-line network of the README, on made-up reports. examples/traffic.yaml is the same
as text.

.venv/bin/python examples/traffic.py
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import penstock as ps

PLACE = Path("out/traffic")
START = 1_767_225_600  # 2026-01-01 00:00:00 UTC

net = ps.Network("traffic")
schema = "time TIMESTAMP, vid INT, spd INT, seg INT"
reports = net.source("reports", ps.csv("out/traffic/in", schema=schema), timestamp="time")
slow = reports.filter("spd < 40", name="slow").group_by("seg", name="by_segment")
minutes = slow.tumble("1 minute", speed="avg(spd)", cars="count(distinct vid)", name="minutes")
point = minutes.connection_point("segment_minutes", keep="2 hours", key="seg")
good = ps.QoS(delay=[(0, 1.0), (5, 1.0), (30, 0.0)])
net.output("jams", point.filter("cars > 50", name="crowded"), to=ps.parquet("out/traffic/jams"), qos=good)


def write_reports(minutes: int = 10) -> None:
    """Cars report every 30 seconds; in segment 3 there are many, and they crawl."""
    dice = random.Random(1)
    rows = []
    for second in range(0, minutes * 60, 30):
        for vid in range(200):
            seg = 3 if vid < 80 else vid % 10
            rows.append(
                f"{START + second},{vid},{dice.randint(5, 25) if seg == 3 else dice.randint(30, 70)},{seg}"
            )
    (PLACE / "in").mkdir(parents=True)
    (PLACE / "in" / "reports.csv").write_text("\n".join(rows) + "\n")


def main() -> None:
    shutil.rmtree(PLACE, ignore_errors=True)
    write_reports()
    with ps.Runtime(net, checkpoint="out/traffic/checkpoint") as running:
        running.attach("slow now", "segment_minutes", lambda s: s.filter("speed < 20"), to=ps.console())
        running.wait_idle()
    print('penstock query out/traffic/checkpoint "SELECT seg, max(cars) FROM segment_minutes GROUP BY seg"')


if __name__ == "__main__":
    main()
