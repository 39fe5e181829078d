"""A page that stays open does not grow: what it keeps of a run is bounded."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.web.browser.played_console import Json, Played, playing
from tests.web.browser.test_page import traffic

pytestmark = pytest.mark.slow
_FULL = (800, 1_000, 1_200)  # statuses: series keep 600, so all of them are full after the first
_LATER = (3_200, 3_400, 3_600)
# Bytes. What comes and goes is 600,000. A status has 8,000 characters: kept, they would be 19 million.
_MOST = 2_000_000


class Ticking(Played):
    """Each status is a second later than the one before, until `until` is reached; then time stands still."""

    until = 0
    sent = 0

    def status_json(self) -> Json:
        self.sent = min(self.sent + 1, self.until)
        return super().status_json() | {"time": self.sent}


def test_a_page_left_open_does_not_grow(open_page: Callable[..., Page]) -> None:
    played = Ticking(traffic(), beat=0.004)
    path = "/api/arrows/plausible:slow:0/tuples"

    def tuples(_: Json) -> tuple[int, Any]:
        rows = [{"n": n, "train": n, "at": 1.0, "tuple": {"spd": n, "_ts": n}} for n in range(played.sent)]
        return 200, {
            "columns": ["spd"],
            "next": played.sent,
            "rows": rows[-50:],
            "watched": True,
            "sampled": "all",
        }

    played.answers[f"GET {path}"] = tuples
    with playing(played) as url:
        page = open_page(url)
        page.locator('[data-arrow="plausible:slow:0"]').dispatch_event("click")
        page.get_by_role("button", name="Look at tuples").click()
        full = least_heap(page, played, _FULL)
        later = least_heap(page, played, _LATER)
    assert later["nodes"] <= full["nodes"] + 50, (full, later)
    assert later["bytes"] - full["bytes"] < _MOST, (full, later)


def least_heap(page: Page, played: Ticking, looks: tuple[int, ...]) -> dict[str, float]:
    """The least of several looks. What comes and goes moves a single one by as much as 0.6 million bytes."""
    seen = [heap_after(page, played, statuses) for statuses in looks]
    return {name: min(each[name] for each in seen) for name in ("bytes", "nodes")}


def heap_after(page: Page, played: Ticking, statuses: int) -> dict[str, float]:
    """What the page keeps after so many statuses: bytes of objects that live, and elements."""
    played.until = statuses
    shown = page.evaluate("at => new Date(at * 1000).toLocaleTimeString('en-GB')", statuses)
    expect(page.get_by_text(f"as of {shown}")).to_be_visible(timeout=240_000)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    for _ in range(3):  # what a collection finds may free more in the next
        session.send("HeapProfiler.collectGarbage")
        time.sleep(0.1)
    found = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return {"bytes": found["JSHeapUsedSize"], "nodes": found["Nodes"]}
