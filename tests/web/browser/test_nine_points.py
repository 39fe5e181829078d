"""Points of the console, each in a browser against a network that really runs on Spark.

All tests share one run; each leaves it as it was. Set PENSTOCK_SCREENSHOTS to a folder to keep a picture of
each point there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.web.browser.test_page import card, panel

import penstock as ps

pytestmark = pytest.mark.slow
OpenPage = Callable[..., Page]
_LONG = 90_000  # milliseconds: the machine may be busy; nothing here waits for a time to pass


def traffic(folder: Path) -> ps.Network:
    """Cars of a made-up city: a group that cleans, a point, a window, two outputs with a QoS."""
    net = ps.Network("traffic")
    ticks = net.source("reports", ps.rate(200), timestamp="timestamp")
    with net.group("clean", manual="Removes what no sensor can have sent."):
        spd, seg = "cast(value * 7 % 90 as int)", "cast(value % 10 as int)"
        decoded = ticks.map(vid="cast(value % 50 as int)", spd=spd, seg=seg, name="decode")
        good = decoded.filter("spd > 3", name="plausible")
    slow = good.filter("spd < 40", name="slow").about(manual="Below 40 mph a toll may be due.")
    point = slow.connection_point("recent", keep="10 minutes", key="seg")
    grouped = point.group_by("seg", name="by_segment")
    minutes = grouped.tumble("2 seconds", speed="avg(spd)", cars="count(*)", name="windows")
    crowded = minutes.filter("cars > 1", name="crowded")
    patient, strict = (
        ps.QoS(delay=graph) for graph in ([(0, 1), (20, 1), (60, 0)], [(0, 1), (0.1, 1), (0.5, 0)])
    )
    net.output("jams", crowded, to=ps.parquet(str(folder / "jams")), qos=patient)
    net.output(
        "fast", good.filter("spd > 80", name="racing"), to=ps.parquet(str(folder / "fast")), qos=strict
    )
    return net


@pytest.fixture(scope="module")
def run(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a console, and the checkpoint of its run."""
    folder = tmp_path_factory.mktemp("console")
    with (
        ps.Runtime(traffic(folder), spark, folder / "checkpoint") as running,
        ps.Console(running, port=0) as console,
    ):
        yield console.url, folder / "checkpoint"


@pytest.fixture
def page(run: tuple[str, Path], open_page: OpenPage) -> Page:
    shown = open_page(run[0])
    shown.set_default_timeout(_LONG)
    expect(shown.get_by_text("live", exact=True)).to_be_visible(timeout=_LONG)
    return shown


def picture(page: Page, name: str) -> None:
    """Keep a picture, if somebody wants them."""
    folder = os.environ.get("PENSTOCK_SCREENSHOTS")
    if folder:
        page.screenshot(path=f"{folder}/console-{name}.png")


def arrow(page: Page, name: str) -> Locator:
    return page.locator(f'[data-arrow="{name}"]')


def test_1_canvas(page: Page) -> None:
    before = card(page, "jams").bounding_box()
    page.locator('[data-group="clean"]').click()
    expect(card(page, "clean/")).to_contain_text("2 boxes")
    assert card(page, "jams").bounding_box() == before
    page.get_by_role("searchbox").fill("note:toll")
    page.get_by_role("searchbox").press("Enter")
    expect(page.get_by_role("tabpanel")).to_contain_text("Below 40 mph a toll may be due.")
    page.get_by_label("Name of this place").fill("the slow ones")
    page.get_by_role("button", name="Keep", exact=True).click()
    page.reload()
    page.get_by_role("button", name="the slow ones", exact=True).click()
    expect(card(page, "clean/")).to_be_visible()
    page.get_by_role("button", name="Forget the slow ones").click()
    picture(page, "canvas")


def test_2_life_on_the_arrows(page: Page) -> None:
    expect(arrow(page, "plausible:racing:0")).to_contain_text(re.compile(r"\d/s"), timeout=_LONG)
    expect(arrow(page, "racing:fast:0")).to_contain_text("u ", timeout=_LONG)
    expect(card(page, "recent")).to_contain_text("reaches back", timeout=_LONG)
    shown = panel(page, "Arrows")
    expect(shown).to_contain_text("racing → fast", timeout=_LONG)
    expect(shown.get_by_role("row", name="plausible → slow")).to_contain_text("unknown")  # it has no queue
    page.get_by_role("button", name="Show all").click()
    picture(page, "arrows")


def test_3_monitor(page: Page) -> None:
    arrow(page, "plausible:racing:0").dispatch_event("click")
    page.get_by_label("Filter").fill("spd > 85")
    page.get_by_role("button", name="Use", exact=True).click()
    rows = page.get_by_role("region", name="Last tuples")
    expect(rows).to_contain_text(re.compile(r"8[6-9]"), timeout=_LONG)
    page.get_by_role("button", name="Pause").click()
    picture(page, "monitor")


def test_4_single_step(page: Page) -> None:
    shown = panel(page, "Step")
    shown.get_by_label("Sub-network").select_option("recent")
    shown.get_by_role("button", name="Hold it").click()
    banner = page.get_by_role("alert")
    expect(banner).to_contain_text("recent", timeout=_LONG)
    shown.get_by_role("button", name="Step one train").click()
    expect(shown.get_by_role("row", name=re.compile("^plausible"))).to_be_visible(timeout=_LONG)
    picture(page, "step")
    banner.get_by_role("button", name="Let it go on").click()
    expect(banner).to_have_count(0, timeout=_LONG)


def test_5_qos(page: Page) -> None:
    shown = panel(page, "QoS")
    expect(shown.get_by_role("row", name=re.compile("^fast"))).to_contain_text("0.", timeout=_LONG)
    shown.get_by_role("button", name="fast", exact=True).click()
    point = shown.get_by_role("slider", name=re.compile("Point 2"))
    for _ in range(12):
        point.press("ArrowRight")
    expect(shown).to_contain_text("measured seconds would have been judged otherwise")
    picture(page, "qos")
    shown.get_by_role("button", name="Apply to the running output").click()
    expect(page.get_by_text("judged by the new graph from now on")).to_be_visible(timeout=_LONG)


def test_9_past(page: Page) -> None:
    shown = panel(page, "Past")
    expect(shown.get_by_role("figure", name="reports: offered a second")).to_be_visible(timeout=_LONG)
    expect(shown.get_by_role("figure", name=re.compile("delay"))).to_be_visible(timeout=_LONG)
    picture(page, "past")
