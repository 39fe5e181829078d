"""The committed page is what its sources build, is small, and axe-core finds no serious fault in it."""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.web.browser.played_console import Played, playing
from tests.web.browser.test_page import panel, played_road, traffic

from penstock.web.page import STATIC

_ROOT = Path(__file__).parents[3]
_AXE = _ROOT / "web/page/node_modules/axe-core/axe.min.js"
_PANELS = ("Arrows", "Monitor", "Box", "Step", "QoS", "Questions", "Edit", "Past")


def test_the_page_is_at_most_400_kb_packed() -> None:
    files = [path for path in STATIC.rglob("*") if path.is_file()]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) <= 400_000


def test_nothing_is_loaded_from_elsewhere_and_nothing_is_inline() -> None:
    index = (STATIC / "index.html").read_text()
    assert "http" not in index
    assert "<style" not in index
    assert index.count("<script") == index.count('src="/static/')
    styles = "".join(path.read_text() for path in STATIC.rglob("*.css"))
    assert "url(" not in styles
    assert "@import" not in styles


@pytest.mark.slow
def test_the_committed_page_is_what_its_sources_build() -> None:
    built = subprocess.run(
        [_ROOT / "scripts/page.sh", "--check"], capture_output=True, text=True, check=False, timeout=800
    )
    assert built.returncode == 0, built.stdout + built.stderr


@pytest.mark.slow
def test_axe_finds_no_serious_fault_in_any_panel(open_page: Callable[..., Page]) -> None:
    subprocess.run([_ROOT / "scripts/page.sh", "--tools"], check=True)
    held = {"subnetwork": "main", "by": "ann", "until": 2e9, "why": "a breakpoint"}
    played = Played(traffic(), status={"held": [held]})
    with playing(played) as url, playing(played_road()) as road:
        for dark in (False, True):
            page = open_page(url, dark=dark)
            page.locator('[data-node="slow"]').click()
            page.get_by_role("searchbox").fill("kind:filter")
            for name in _PANELS:
                panel(page, name)
                assert serious_faults(page) == [], (name, dark)
            page.close()
            page = open_page(road, dark=dark)
            panel(page, "Road")
            expect(page.get_by_role("button", name="segment 3")).to_be_visible()
            assert serious_faults(page) == [], ("Road", dark)
            page.close()
            played.answers["GET /api/network"] = 401, {"error": "the request has no valid token"}
            page = open_page(url, dark=dark, ready="input[type=password]")
            assert serious_faults(page) == [], ("token", dark)
            page.close()
            del played.answers["GET /api/network"]


def serious_faults(page: Page) -> list[Any]:
    """What axe-core calls serious or critical. It is evaluated, not loaded: the policy stays in force."""
    page.evaluate(_AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        (fault["id"], [node["html"] for node in fault["nodes"]][:3])
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
