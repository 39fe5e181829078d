"""How fluid the console's page is: times between frames while a network of 60 and of 300 boxes is moved.

The browser is Debian's Chromium without a screen and without a graphics card, so it paints on the CPU. The
page is the built one; its figures are played and change once a second, as in a run. All groups are open and
the whole network is on the screen: the most work there can be. Half of the frames drag it, half zoom it.

Figure: milliseconds between two frames, for each number of boxes: median, 95 of 100, longest.
Time:   about a minute; --quick half of it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright
from tests.web.browser.played_console import Played, playing

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.facts import ROOT
from benchmarks.common.results import recording
from benchmarks.common.tables import show

_CHAIN = 9  # filters in each group
_MOVE = (Path(__file__).parent / "move_canvas.js").read_text()


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--frames", type=int, default=400, help="frames of each kind, dragged and zoomed")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.frames = 100
    with recording("web-console", chosen, frames=chosen.frames) as record, sync_playwright() as playwright:
        found = subprocess.run([ROOT / "scripts/chromium.sh"], capture_output=True, text=True, check=True)
        browser = playwright.chromium.launch(executable_path=found.stdout.strip(), args=["--no-sandbox"])
        record.figures = [
            {"boxes": boxes, **frame_times(browser, boxes, chosen.frames)} for boxes in (60, 300)
        ]
        browser.close()
        show("milliseconds between frames", record.figures)
    return record.exit_code


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
        found: dict[str, Any] = page.evaluate(_MOVE, frames)
        page.close()
    return found


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
