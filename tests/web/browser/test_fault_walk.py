"""The walk of docs/console.md: an output has become silent, and the console tells why. Replayed on Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.web.browser.real_run import LONG, arrow, picture
from tests.web.browser.test_page import card, panel

import penstock as ps

pytestmark = pytest.mark.slow


def faulty() -> ps.Network:
    """`valid` should keep what a sensor can have sent, `spd < 200`; somebody has written `spd > 40`."""
    net = ps.Network("tolls")
    ticks = net.source("cars", ps.rate(100), timestamp="timestamp")
    decoded = ticks.map(vid="cast(value % 50 as int)", spd="cast(value * 7 % 90 as int)", name="decode")
    valid = decoded.filter("spd > 40", name="valid").about(manual="Keeps what a sensor can have sent.")
    recent = valid.connection_point("recent", keep="10 minutes")
    qos = ps.QoS(delay=[(0, 1), (10, 1), (30, 0)])
    net.output("slow", recent.filter("spd < 40", name="chosen"), to=ps.console(), qos=qos)
    net.output("all", valid, to=ps.console(), qos=qos)
    return net


@pytest.fixture
def console(spark: Any, tmp_path: Path) -> Iterator[str]:
    with (
        ps.Runtime(faulty(), spark, tmp_path / "checkpoint") as running,
        ps.Console(running, port=0) as console,
    ):
        yield console.url


def test_the_walk(console: str, open_page: Callable[..., Page]) -> None:
    page = open_page(console, width=1600, height=900)
    page.set_default_timeout(LONG)
    # 1. The arrow into the silent output is dashed, and the box before it lets nothing pass.
    expect(arrow(page, "chosen:slow:0")).to_have_class(re.compile("quiet"), timeout=LONG)
    expect(card(page, "chosen")).to_contain_text("sel 0", timeout=LONG)
    expect(arrow(page, "recent:chosen:0")).to_contain_text(re.compile(r"[1-9]\d*(\.\d+)?/s"), timeout=LONG)
    picture(page, "walk-1-silent")
    # 2. Tuples come to it, but no slow ones.
    look_at(page, "recent:chosen:0", "spd < 40")
    expect(page.get_by_role("region", name="Last tuples")).to_contain_text("No tuple fits the filter.")
    # 3. In front of `valid` there are slow ones.
    look_at(page, "decode:valid:0", "spd < 40")
    rows = page.get_by_role("region", name="Last tuples")
    expect(rows.get_by_role("row").nth(3)).to_be_visible(timeout=LONG)
    picture(page, "walk-2-before-valid")
    # 4. A breakpoint there, and a step of one tuple.
    shown = panel(page, "Step")
    shown.get_by_placeholder("spd < 10").fill("spd < 40")
    shown.get_by_role("button", name="Set").click()
    banner = page.get_by_role("alert")
    expect(banner).to_contain_text("breakpoint spd < 40 on decode:valid:0", timeout=LONG)
    shown.get_by_label("Sub-network").select_option("recent")
    valid = shown.get_by_role("row", name="valid 1 0 0")
    for _ in range(40):  # about half of the cars are slow
        before = shown.locator("details").count()
        shown.get_by_role("button", name="Step one tuple").click()
        expect(shown.locator("details")).to_have_count(before + 1, timeout=LONG)
        if valid.count():
            break
    expect(valid.first).to_be_visible()
    picture(page, "walk-3-step")
    page.get_by_role("button", name="close", exact=True).click()
    # 5. Its text is wrong: mend it, see what that costs, apply it, let the network go on.
    shown.get_by_role("button", name="remove").click()
    banner.get_by_role("button", name="Let it go on").click()
    expect(banner).to_have_count(0, timeout=LONG)
    panel(page, "Arrows")
    card(page, "valid").click()
    text = shown.get_by_label("Its text")
    text.fill(text.input_value().replace("spd > 40", "spd < 200"))
    shown.get_by_role("button", name="Put into the edit").click()
    shown.get_by_role("button", name="What will it cost?").click()
    cost = shown.get_by_label("What it will cost")
    expect(cost).to_contain_text("filter 'valid': spd > 40 becomes spd < 200", timeout=LONG)
    expect(cost).to_contain_text("sub-network 'recent' pauses")
    expect(cost).to_contain_text("nobody else notices")
    expect(cost).not_to_contain_text("'slow'")
    picture(page, "walk-4-cost")
    shown.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_text("Version 2 runs.")).to_be_visible(timeout=LONG)
    expect(arrow(page, "chosen:slow:0")).to_contain_text(re.compile(r"[1-9]\d*(\.\d+)?/s"), timeout=LONG)
    expect(shown.get_by_role("row", name=re.compile("^2 "))).to_contain_text("somebody here")
    picture(page, "walk-5-mended")
    assert json.loads(page.request.get(f"{console}/api/network").text())["version"] == 2


def look_at(page: Page, name: str, condition: str) -> None:
    """Choose an arrow, and look at the tuples on it that fit a condition."""
    arrow(page, name).dispatch_event("click")
    page.get_by_label("Filter").fill(condition)
    page.get_by_role("button", name="Use", exact=True).click()
