"""Linear Road in the console while it really runs on Spark: the road, its answers, a vehicle."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.web.browser.real_run import LONG, picture
from tests.web.browser.test_page import panel

import penstock as ps
from linear_road.golden_input import balance, by_time, report
from penstock.linear_road.run import runner
from penstock.linear_road.run.plan import RunPlan

pytestmark = pytest.mark.slow
_SPEED = 20  # times faster than the clock: a minute of the road every three seconds
_SECONDS = 7_200  # longer than any test looks: the run is stopped
_CROWD, _STANDING = 200, (900, 901)


def rows() -> list[str]:
    """A crowd over three segments that crawls on, and two cars that stand at one place."""
    found: list[str] = []
    for time in range(0, _SECONDS, 30):
        for vid in range(_CROWD):
            place = 5_280 * 10 + 5_280 * time // 180 + 80 * vid
            found.append(report(time + vid % 30, vid, place, spd=20 + vid % 15, lane=1 + vid % 3))
        found += [report(time + 2, vid, 5_280 * 70 + 100, lane=1) for vid in _STANDING]
        found.append(balance(time + 29, 7, time))
    return by_time(*found)


@pytest.fixture(scope="module")
def road(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the console of a run of Linear Road."""
    folder = tmp_path_factory.mktemp("road")
    (folder / "rows.dat").write_text("\n".join(rows()) + "\n")
    plan = RunPlan(folder / "rows.dat", folder / "out", speed=_SPEED)
    stop, served, said = threading.Event(), threading.Event(), [""]

    @contextmanager
    def beside(running: ps.Runtime) -> Iterator[None]:
        with ps.Console(running, port=0) as console:
            said[0] = console.url
            served.set()
            yield

    def drive() -> None:
        try:
            runner.run(plan, stop=stop, watcher=runner.Watcher(beside=beside), session=spark)
        finally:
            served.set()  # a run that failed has no console, and the test says so

    patch = pytest.MonkeyPatch()
    patch.setattr(runner, "warm_up", lambda _session, **_options: 0.0)
    thread = threading.Thread(target=drive, name="linear-road")
    thread.start()
    try:
        served.wait()
        yield said[0]
    finally:
        stop.set()
        thread.join()
        patch.undo()


def test_8_linear_road(road: str, open_page: Callable[..., Page]) -> None:
    page = open_page(road, width=1600, height=1000)
    shown = panel(page, "Road")
    crowded = shown.get_by_role("button", name=re.compile(r"\d+ mph, [5-7]\d vehicles, toll [1-9]"))
    expect(crowded.first).to_be_visible(timeout=LONG)
    wreck = shown.get_by_role("button", name=re.compile("^segment 70: .*accident"))
    expect(wreck).to_contain_text("✕", timeout=LONG)
    expect(shown.get_by_role("row", name=re.compile("^tolls"))).to_contain_text("5 s", timeout=LONG)
    expect(shown.get_by_role("row", name=re.compile("^balances"))).to_contain_text("5 s")
    shown.get_by_label("Number").fill("7")
    shown.get_by_role("button", name="Look up").click()
    vehicle = shown.get_by_role("row", name=re.compile("^Position"))
    expect(vehicle).to_contain_text(re.compile(r"Seg \d+"), timeout=LONG)
    expect(shown.get_by_role("row", name=re.compile("^Its toll"))).to_contain_text("mph", timeout=LONG)
    expect(shown.get_by_role("region", name="Tolls").get_by_role("row").nth(1)).to_be_visible(timeout=LONG)
    picture(page, "road")
