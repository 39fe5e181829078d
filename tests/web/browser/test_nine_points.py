"""The points of the console, each in a browser against a network that really runs on Spark.

All tests but that of Linear Road share one run; each leaves it as it was. scripts/screenshots.sh keeps a
picture of each point.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.web.browser.real_run import LONG, arrow, picture, traffic, write
from tests.web.browser.test_page import card, panel

import penstock as ps

pytestmark = pytest.mark.slow
OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def run(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a console, and the checkpoint of its run."""
    folder = tmp_path_factory.mktemp("console")
    with (
        ps.Runtime(traffic(), spark, folder / "checkpoint") as running,
        ps.Console(running, port=0) as console,
    ):
        yield console.url, folder / "checkpoint"


@pytest.fixture
def page(run: tuple[str, Path], open_page: OpenPage) -> Page:
    shown = open_page(run[0])
    shown.set_default_timeout(LONG)
    expect(shown.get_by_text("live", exact=True)).to_be_visible(timeout=LONG)
    return shown


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
    expect(arrow(page, "plausible:racing:0")).to_contain_text(re.compile(r"\d/s"), timeout=LONG)
    expect(arrow(page, "racing:fast:0")).to_contain_text("u ", timeout=LONG)
    expect(card(page, "recent")).to_contain_text("reaches back", timeout=LONG)
    shown = panel(page, "Arrows")
    expect(shown).to_contain_text("racing → fast", timeout=LONG)
    expect(shown.get_by_role("row", name="plausible → slow")).to_contain_text("unknown")  # it has no queue
    picture(page, "arrows")


def test_3_monitor(page: Page) -> None:
    arrow(page, "plausible:racing:0").dispatch_event("click")
    page.get_by_label("Filter").fill("spd > 85")
    page.get_by_role("button", name="Use", exact=True).click()
    rows = page.get_by_role("region", name="Last tuples")
    expect(rows).to_contain_text(re.compile(r"8[6-9]"), timeout=LONG)
    page.get_by_role("button", name="Pause").click()
    picture(page, "monitor")


def test_4_single_step(page: Page) -> None:
    shown = panel(page, "Step")
    shown.get_by_label("Sub-network").select_option("recent")
    shown.get_by_role("button", name="Hold it").click()
    banner = page.get_by_role("alert")
    expect(banner).to_contain_text("recent", timeout=LONG)
    shown.get_by_role("button", name="Step one train").click()
    expect(shown.get_by_role("row", name=re.compile("^plausible"))).to_be_visible(timeout=LONG)
    picture(page, "step")
    banner.get_by_role("button", name="Let it go on").click()
    expect(banner).to_have_count(0, timeout=LONG)


def test_5_qos(page: Page) -> None:
    page.set_viewport_size({"width": 1600, "height": 900})
    shown = panel(page, "QoS")
    rated = shown.get_by_role("row", name=re.compile("^fast"))
    expect(rated).to_contain_text(re.compile(r"[01]\.\d\d"), timeout=LONG)
    shown.get_by_role("button", name="fast", exact=True).click()
    point = shown.get_by_role("slider", name=re.compile("Point 2"))
    for _ in range(12):
        point.press("ArrowRight")
    expect(shown).to_contain_text("measured seconds would have been judged otherwise")
    picture(page, "qos")
    shown.get_by_role("button", name="Apply to the running output").click()
    expect(page.get_by_text("judged by the new graph from now on")).to_be_visible(timeout=LONG)


def test_6_questions(page: Page) -> None:
    shown = panel(page, "Questions")
    text = shown.get_by_role("textbox", name="Query")
    write(page, text, "SELECT seg, spdd FROM recent WHERE spd < 20 ")
    expect(shown).to_contain_text("unknown column 'spdd'", timeout=LONG)
    expect(shown.locator(".cm-lintRange-error")).to_have_text("spdd")
    write(page, text, "SELECT seg, sp")
    expect(shown.locator(".cm-tooltip-autocomplete")).to_contain_text("spdINT")
    page.keyboard.press("Escape")
    write(page, text, "SELECT seg, spd FROM recent WHERE spd < 20 ")
    expect(shown).to_contain_text("Gives seg INT, spd INT", timeout=LONG)
    shown.get_by_label("Name").fill("crawlers")
    shown.get_by_role("button", name="Ask", exact=True).click()
    answers = shown.get_by_role("region", name="Answers of crawlers")
    expect(answers.get_by_role("row").nth(20)).to_be_visible(timeout=LONG)  # what was kept, then what comes
    speeds = answers.get_by_role("cell").filter(has_text=re.compile(r"^1?\d$"))
    assert speeds.count() > 20
    expect(shown.get_by_role("figure", name="seg over event time")).to_be_visible()
    picture(page, "questions")
    shown.get_by_role("button", name="Let it go").click()
    expect(answers).to_have_count(0, timeout=LONG)


def test_6_a_question_is_kept_as_a_view(page: Page) -> None:
    shown = panel(page, "Questions")
    write(page, shown.get_by_role("textbox", name="Query"), "SELECT seg, spd FROM recent WHERE spd < 9 ")
    shown.get_by_label("Name").fill("crawling")
    shown.get_by_label("Keep as a view for").fill("5 minutes")
    shown.get_by_role("button", name="Ask", exact=True).click()
    expect(card(page, "crawling")).to_contain_text("reaches back", timeout=LONG)
    shown.get_by_role("button", name="Let it go").click()
    expect(card(page, "crawling")).to_have_count(0, timeout=LONG)


def test_6_standing_queries_and_dead_letters(page: Page) -> None:
    shown = panel(page, "Questions")
    shown.get_by_text("Standing queries").click()
    question = "SELECT seg, spd FROM recent WHERE spd < 9 BEGIN now - 5 minutes END now"
    shown.get_by_label("SELECT … FROM a connection point").fill(question)
    shown.get_by_role("button", name="Register").click()
    registered = shown.get_by_role("row", name=re.compile("BEGIN now - 5 minutes"))
    registered.get_by_role("button", name="invoke").click(timeout=LONG)
    expect(shown.get_by_role("region", name="Answer").get_by_role("row").nth(3)).to_be_visible(timeout=LONG)
    registered.get_by_role("button", name="follow").click()
    expect(registered.get_by_role("button", name="stop following")).to_be_visible()
    registered.get_by_role("button", name="unregister").click()
    expect(registered).to_have_count(0, timeout=LONG)
    shown.get_by_text(re.compile("^Dead letters")).click()
    expect(shown.get_by_role("row", name=re.compile("^decode.*ivi"))).to_be_visible(timeout=LONG)
    with page.expect_download() as download:
        shown.get_by_role("link", name="Download all").click()
    assert "decode" in download.value.path().read_text()
    picture(page, "dead-letters")


def test_7_editing(run: tuple[str, Path], page: Page) -> None:
    version = json.loads(page.request.get(f"{run[0]}/api/network").text())["version"]
    page.get_by_role("button", name="Show all").click()
    shown = panel(page, "Edit")
    page.locator('[data-kind="filter"]').drag_to(
        arrow(page, "plausible:racing:0").locator(".room"), force=True
    )
    expect(page.get_by_text("filter_new is in the text")).to_be_visible()
    shown.get_by_role("button", name="What will it cost?").click()
    cost = shown.get_by_label("What it will cost")
    expect(cost).to_contain_text("filter 'filter_new' (true) is new", timeout=LONG)
    expect(cost).to_contain_text(re.compile("sub-network '\\w+' pauses"))
    expect(cost).to_contain_text("nobody else notices")
    page.get_by_role("button", name="close", exact=True).click()
    picture(page, "edit")
    shown.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_text(f"Version {version + 1} runs.")).to_be_visible(timeout=LONG)
    expect(card(page, "filter_new")).to_be_visible(timeout=LONG)
    expect(arrow(page, "filter_new:racing:0")).to_contain_text(re.compile(r"\d/s"), timeout=LONG)
    shown.get_by_role("button", name="Undo the last edit").click()
    expect(card(page, "filter_new")).to_have_count(0, timeout=LONG)
    expect(shown.get_by_role("row", name=re.compile(f"^{version + 2} "))).to_contain_text("somebody here")


def test_7_what_cannot_be_and_what_moved_meanwhile(run: tuple[str, Path], page: Page) -> None:
    shown = panel(page, "Box")
    page.get_by_role("searchbox").fill("crowded")
    page.get_by_role("searchbox").press("Enter")
    text = shown.get_by_label("Its text")
    text.fill(text.input_value().replace("cars > 1", "carz > 1"))
    shown.get_by_role("button", name="Put into the edit").click()
    shown.get_by_role("button", name="What will it cost?").click()
    expect(shown.get_by_label("Why it cannot be made")).to_contain_text("carz", timeout=LONG)
    expect(shown.get_by_role("button", name="Apply", exact=True)).to_be_disabled()
    shown.get_by_role("button", name="Forget the edit").click()
    # Somebody else sets a QoS while this page has an edit.
    network = json.loads(page.request.get(f"{run[0]}/api/network").text())
    page.locator('[data-node="crowded"]').click()
    panel(page, "Box")
    text.fill(text.input_value().replace("cars > 1", "cars > 2"))
    shown.get_by_role("button", name="Put into the edit").click()
    qos = {"version": network["version"], "qos": {"delay": [[0, 1], [30, 1], [60, 0]]}}
    assert page.request.post(f"{run[0]}/api/qos/jams", data=qos).ok
    shown.get_by_role("button", name="What will it cost?").click()
    moved = shown.get_by_role("alert")
    expect(moved).to_contain_text("output 'jams': its QoS changes", timeout=LONG)
    picture(page, "moved")
    shown.get_by_role("button", name="Forget the edit").click()


def test_9_past(page: Page) -> None:
    shown = panel(page, "Past")
    expect(shown.get_by_role("figure", name="reports: offered a second")).to_be_visible(timeout=LONG)
    expect(shown.get_by_role("figure", name=re.compile("delay"))).to_be_visible(timeout=LONG)
    picture(page, "past")
