"""What the tests of the console against a real run on Spark share: networks, a page, pictures of it."""

from __future__ import annotations

import os
from typing import Any

from playwright.sync_api import Locator, Page

import penstock as ps

LONG = 90_000
"""Milliseconds: the machine may be busy. Nothing waits for a time to pass."""

_SPEED = "cast(value * 7 % 90 as int)"


def traffic() -> ps.Network:
    """Cars of a made-up city: a group that cleans, a point, a window, two outputs with a QoS.

    A car that stands has no pace: it becomes a dead letter.
    """
    net = ps.Network("traffic")
    ticks = net.source("reports", ps.rate(200), timestamp="timestamp")
    with net.group("clean", manual="Removes what no sensor can have sent."):
        columns = {"vid": "cast(value % 50 as int)", "spd": _SPEED, "seg": "cast(value % 10 as int)"}
        decoded = ticks.map(**columns, pace=f"cast(60 / ({_SPEED}) as int)", name="decode")
        good = decoded.filter("spd > 3", name="plausible")
    slow = good.filter("spd < 40", name="slow").about(manual="Below 40 mph a toll may be due.")
    point = slow.connection_point("recent", keep="10 minutes", key="seg")
    grouped = point.group_by("seg", name="by_segment")
    minutes = grouped.tumble("2 seconds", speed="avg(spd)", cars="count(*)", name="windows")
    crowded = minutes.filter("cars > 1", name="crowded")
    patient, strict = (
        ps.QoS(delay=graph) for graph in ([(0, 1), (20, 1), (60, 0)], [(0, 1), (0.2, 1), (3, 0)])
    )
    net.output("jams", crowded, to=ps.console(), qos=patient)
    net.output("fast", good.filter("spd > 80", name="racing"), to=ps.console(), qos=strict)
    return net


def arrow(page: Page, name: str) -> Locator:
    return page.locator(f'[data-arrow="{name}"]')


def write(page: Page, box: Any, text: str) -> None:
    """Write a text into an editor in place of what it holds."""
    box.click()
    page.keyboard.press("Control+A")
    page.keyboard.type(text)


def picture(page: Page, name: str, *, whole: bool = True) -> None:
    """Keep a picture, if somebody wants them: PENSTOCK_SCREENSHOTS names the folder. `whole`: all boxes."""
    folder = os.environ.get("PENSTOCK_SCREENSHOTS")
    if not folder:
        return
    if whole:
        page.get_by_role("button", name="Show all").click()
    page.mouse.move(1, 1)  # nothing looks as if it were pointed at
    page.screenshot(path=f"{folder}/console-{name}.png")
