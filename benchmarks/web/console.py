"""How fluid the console's page is, and what an open page costs a run of Linear Road.

Frames: the browser is Debian's Chromium without a screen and without a graphics card: it paints on the CPU.
The page is the built one; its figures are played and change once a second, as in a run. All groups are open
and the whole network is on the screen: the most work there can be. Half of the frames drag it, half zoom it.

Road: `penstock lr run` at L = 100, a minute with an open page and a minute without, five pairs
(benchmarks/web/road_pairs.py).

Figure: milliseconds between two frames, for each number of boxes: median, 95 of 100, longest. CPU seconds a
        million tuples with and without a page, for each pair, and the median of what a page adds.
Time:   frames about a minute; road about 13 minutes, and 5 more if --set has no prepared traffic;
        --quick about 6 minutes, most of it for the road.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright
from tests.web.browser.played_console import Played, playing

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.facts import ROOT
from benchmarks.common.results import Record, recording
from benchmarks.common.spark import scratch
from benchmarks.common.tables import show
from benchmarks.web.road_pairs import measured_pairs, plan_of
from penstock.linear_road.rate.prepared_input import prepare_set

_CHAIN = 9  # filters in each group
_MOVE = (Path(__file__).parent / "move_canvas.js").read_text()
_FRAME_BAR = 50.0  # milliseconds
_CPU_BAR = 0.03  # what an open page may add
_PARTS = ("frames", "road")


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=list(_PARTS), help="what to measure")
    parser.add_argument("--frames", type=int, default=400, help="frames of each kind, dragged and zoomed")
    parser.add_argument("--xways", type=float, default=100, help="L of the road")
    parser.add_argument("--pairs", type=int, default=5, help="stretches with and without a page")
    parser.add_argument("--set", type=Path, help="the prepared set of a rating; made if it is not there")
    parser.add_argument("--warm-up", type=int, default=90, help="seconds before the scored minutes")
    parser.add_argument("--minutes", type=int, default=10, help="of all stretches together")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.frames, chosen.xways, chosen.pairs, chosen.minutes = 100, 0.5, 1, 1
    return chosen


def main() -> int:
    chosen = parse()
    config = {
        name: value for name, value in vars(chosen).items() if name not in ("quick", "seed", "no_result")
    }
    with recording("web-console", chosen, **config) as record, sync_playwright() as playwright:
        chromium = subprocess.run([ROOT / "scripts/chromium.sh"], capture_output=True, text=True, check=True)
        browser = playwright.chromium.launch(
            executable_path=chromium.stdout.strip(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        record.figures = {}
        if "frames" in chosen.parts:
            measure_frames(record, browser, chosen.frames)
        if "road" in chosen.parts:
            measure_road(record, browser, chosen)
        browser.close()
    return record.exit_code


def measure_frames(record: Record, browser: Browser, frames: int) -> None:
    rows = [{"boxes": boxes, **frame_times(browser, boxes, frames)} for boxes in (60, 300)]
    record.figures["frames"] = rows
    show("milliseconds between frames", rows)
    for row in rows:
        slowest = max(row["drag_p95"], row["zoom_p95"])
        if slowest > _FRAME_BAR:
            record.found_wrong(
                f"{row['boxes']} boxes: 95 of 100 frames within {slowest} ms, not {_FRAME_BAR}"
            )


def measure_road(record: Record, browser: Browser, chosen: argparse.Namespace) -> None:
    with scratch() as folder:
        plan = plan_of(folder, chosen.set, warm_up=chosen.warm_up, minutes=chosen.minutes, quick=chosen.quick)
        record.config |= {"plan": plan.as_json()}
        prepared = prepare_set(plan, lambda _name, _done, _total: None, os.cpu_count() or 1)
        road = measured_pairs(browser, plan, prepared, chosen.xways, chosen.pairs)
    record.figures["road"] = road
    shown = ("pair", "without_cpu_s_per_million", "with_cpu_s_per_million", "more_cpu")
    show(
        "Linear Road with and without a page", [{name: row[name] for name in shown} for row in road["pairs"]]
    )
    if road["more_cpu_median"] > _CPU_BAR and not chosen.quick:
        record.found_wrong(f"an open page adds {100 * road['more_cpu_median']:.1f} % of CPU")


def frame_times(browser: Browser, boxes: int, frames: int) -> dict[str, Any]:
    """Milliseconds between frames, while the network is dragged and while it is zoomed."""
    with playing(Played(network_of(boxes), beat=1.0)) as url:
        page = browser.new_page(viewport={"width": 1920, "height": 1080})
        page.goto(url)
        page.wait_for_selector("[data-node]")
        page.get_by_role("button", name="Open groups").click()
        page.get_by_role("button", name="Show all").click()
        shown = page.locator("[data-node]").count()
        assert shown == boxes, f"{shown} boxes are on the page"
        times: dict[str, Any] = page.evaluate(_MOVE, frames)
        page.close()
    return times


def network_of(boxes: int) -> ps.Network:
    """A source, and groups of filters that each end in an output with a QoS; the last group is shorter."""
    net = ps.Network("many")
    ticks = net.source("ticks", ps.rate(5), timestamp="timestamp")
    good = ps.QoS(delay=[(0, 1.0), (5, 1.0), (30, 0.0)])
    left, number = boxes - 1, 0
    while left > 0:
        filters, stream = min(_CHAIN, left - 1), ticks
        with net.group(f"chain_{number}"):
            for at in range(filters):
                stream = stream.filter(f"value % {at + 2} = 0", name=f"filter_{number}_{at}")
        net.output(f"out_{number}", stream, to=ps.parquet(f"out/{number}"), qos=good)
        left, number = left - filters - 1, number + 1
    return net


if __name__ == "__main__":
    sys.exit(main())
