"""The page alone, on figures that the test plays: quick, without Spark. One browser serves all tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.web.browser.played_console import Played, playing

import penstock as ps

OpenPage = Callable[..., Page]


def traffic() -> ps.Network:
    """Cars, cleaned in a group, kept at a point, counted; a second output beside."""
    net = ps.Network("traffic")
    ticks = net.source("reports", ps.rate(200), timestamp="timestamp")
    with net.group("clean", manual="Removes what no sensor can have sent."):
        decoded = ticks.map(spd="cast(value * 7 % 90 as int)", seg="cast(value % 10 as int)", name="decode")
        good = decoded.filter("spd > 3", name="plausible")
    slow = good.filter("spd < 40", name="slow").about(manual="Below 40 mph a toll may be due.")
    point = slow.connection_point("recent", keep="10 minutes")
    counted = point.group_by("seg", name="by_segment").tumble("10 seconds", cars="count(*)", name="windows")
    good_until = ps.QoS(delay=[(0, 1.0), (5, 1.0), (30, 0.0)], approximate=True)
    net.output("jams", counted, to=ps.parquet("out/jams"), qos=good_until)
    net.output("fast", good.filter("spd > 80", name="racing"), to=ps.parquet("out/fast"))
    return net


@pytest.fixture
def played() -> Played:
    return Played(traffic())


@pytest.fixture
def console(played: Played) -> Iterator[str]:
    with playing(played) as url:
        yield url


def card(page: Page, name: str) -> Any:
    return page.locator(f'[data-node="{name}"]')


def panel(page: Page, name: str) -> Any:
    page.get_by_role("tab", name=name, exact=True).click()
    return page.get_by_role("tabpanel")


def test_groups_close_in_place_and_open_again(console: str, open_page: OpenPage) -> None:
    page = open_page(console)
    before = {name: card(page, name).bounding_box() for name in ("reports", "slow", "jams")}
    page.locator('[data-group="clean"]').click()
    expect(card(page, "decode")).to_have_count(0)
    expect(card(page, "clean/")).to_contain_text("2 boxes")
    expect(page.locator('[data-arrow="reports:clean/:0"]')).to_have_count(1)
    assert {name: card(page, name).bounding_box() for name in before} == before
    card(page, "clean/").dblclick()
    expect(card(page, "decode")).to_be_visible()


def test_teleport_finds_by_kind_note_column_and_utility(console: str, open_page: OpenPage) -> None:
    page = open_page(console)
    found = page.get_by_role("list", name="Found")
    for query, name in [
        ("kind:tumble", "windows"),
        ("note:toll", "slow"),
        ("column:cars", "jams"),
        ("recent", "recent"),
        ("utility<0.5", "decode"),
    ]:
        page.get_by_role("searchbox").fill(query)
        expect(found).to_contain_text(name)
    page.get_by_role("searchbox").fill("kind:tumble")
    page.get_by_role("searchbox").press("Enter")
    expect(card(page, "windows")).to_have_class(re.compile("chosen"))
    expect(card(page, "windows")).to_be_in_viewport(ratio=0.99)
    expect(page.get_by_role("tabpanel")).to_contain_text("tumble windows")


def test_the_keyboard_walks_along_arrows(console: str, open_page: OpenPage) -> None:
    page = open_page(console)
    card(page, "reports").click()
    for key, name in [("ArrowDown", "decode"), ("ArrowDown", "plausible"), ("ArrowUp", "decode")]:
        page.keyboard.press(key)
        expect(card(page, name)).to_be_focused()
    page.locator("body").press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()


def test_the_picture_runs_as_it_fits_the_screen_or_as_wished(console: str, open_page: OpenPage) -> None:
    def places(page: Page) -> list[tuple[float, float]]:
        boxes = [card(page, name).bounding_box() for name in ("decode", "plausible")]
        return [(box["x"] + box["width"] / 2, box["y"]) for box in boxes if box is not None]

    page = open_page(console)
    expect(page.get_by_role("button", name="Lay it out across")).to_be_visible()
    (x, y), (x_next, y_next) = places(page)
    assert abs(x_next - x) < y_next - y
    page.get_by_role("button", name="Lay it out across").click()
    expect(page.get_by_role("button", name="Lay it out down")).to_be_visible()
    (x, y), (x_next, y_next) = places(page)
    assert x_next - x > abs(y_next - y)
    page.reload()
    expect(page.get_by_role("button", name="Lay it out down")).to_be_visible()


def test_panels_can_be_put_away(console: str, open_page: OpenPage) -> None:
    page = open_page(console)
    page.get_by_role("button", name="Hide panels").click()
    expect(page.get_by_role("tablist")).to_have_count(0)
    page.get_by_role("button", name="Show panels").click()
    expect(page.get_by_role("tablist")).to_be_visible()


def test_numbers_stand_beside_colours_and_unknown_is_unknown(console: str, open_page: OpenPage) -> None:
    page = open_page(console)
    bad, unknown = (
        page.locator(f'[data-arrow="{arrow}"]') for arrow in ("reports:decode:0", "racing:fast:0")
    )
    expect(bad).to_have_class(re.compile("bad"))
    expect(bad).to_contain_text("u 0.20")
    expect(unknown).to_have_class(re.compile("unknown"))
    expect(unknown).to_contain_text("?")
    expect(unknown).to_have_attribute("aria-label", re.compile("rate unknown, waiting .* utility unknown"))
    unknown.dispatch_event("click")
    expect(page.get_by_role("tabpanel").get_by_role("row", name="Rate")).to_have_text("Rateunknown")


def test_a_monitor_asks_for_tuples_only_while_somebody_looks(
    played: Played, console: str, open_page: OpenPage
) -> None:
    rows = [{"n": 1, "train": 1, "at": 1.0, "tuple": {"spd": 17, "_ts": 5.0}}]
    path = "/api/arrows/plausible:slow:0/tuples"
    played.answers[f"GET {path}"] = (
        200,
        {"columns": ["spd"], "next": 2, "rows": rows, "watched": True, "sampled": "all"},
    )
    page = open_page(console)
    page.locator('[data-arrow="plausible:slow:0"]').dispatch_event("click")
    expect(page.get_by_text("nothing is sampled while nobody looks")).to_be_visible()
    assert not [asked for _, asked, _ in played.requests if asked == path]
    page.get_by_role("button", name="Look at tuples").click()
    expect(page.get_by_role("region", name="Last tuples")).to_contain_text("17")
    page.get_by_label("Filter").fill("spd < 40")
    page.get_by_role("button", name="Use", exact=True).click()
    expect(page.get_by_role("region", name="Last tuples")).to_contain_text("17")
    assert played.requests[-1][2].get("condition") == "spd < 40"


def test_what_is_held_is_said_until_it_goes_on(played: Played, console: str, open_page: OpenPage) -> None:
    held = {"subnetwork": "main", "by": "ann", "until": 2e9, "why": "a breakpoint on reports:decode:0"}
    played.status = {"held": [held]}
    page = open_page(console)
    banner = page.get_by_role("alert")
    expect(banner).to_contain_text("main by ann: a breakpoint")
    banner.get_by_role("button", name="Let it go on").click()
    played.status = {}
    expect(banner).to_have_count(0)
    assert ("POST", "/api/release", {"version": 1, "subnetwork": "main"}) in played.requests


def test_dragging_a_qos_point_tells_what_it_would_have_judged(
    played: Played, console: str, open_page: OpenPage
) -> None:
    second = {"tuples": 1, "delay_p50": 4.0, "delay_p99": 4.0, "age": None, "share": 1.0, "utility": 1.0}
    seconds = [{"second": at, **second} for at in range(100, 160)]
    played.answers["GET /api/history"] = (
        200,
        {"outputs": {"jams": seconds}, "inputs": {}, "decisions": [], "events": []},
    )
    played.answers["POST /api/qos/jams"] = 200, {"version": 1, "qos": {}}
    page = open_page(console)
    panel(page, "QoS")
    point = page.get_by_role("slider", name="Point 2: 5 s")
    box = point.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] - 30, box["y"] + 5, steps=4)
    page.mouse.up()
    expect(page.get_by_text("60 of the last 60 measured seconds")).to_be_visible()
    page.get_by_role("button", name="Apply to the running output").click()
    expect(page.get_by_text("judged by the new graph from now on")).to_be_visible()
    sent = next(body for method, path, body in played.requests if path == "/api/qos/jams")
    assert sent["version"] == 1
    assert sent["qos"]["delay"][1][0] < 4
    assert sent["qos"]["approximate"] is True, "what was not dragged goes back as it came"


def test_a_box_dropped_on_an_arrow_is_in_the_text_and_costs_are_told_first(
    played: Played, console: str, open_page: OpenPage
) -> None:
    cost = {"words": ["filter 'filter_new' is new"], "effects": ["nobody else notices"], "subnetworks": []}
    preview = {"ok": True, "version": 1, "yaml": "", "error": None, "needs_fresh_state": False, **cost}
    played.answers["POST /api/edit/preview"] = 200, preview | {"needs_new_checkpoint": None}
    played.answers["POST /api/edit/apply"] = (
        409,
        {"error": "the network has moved", "version": 2, "difference": ["filter 'slow': 40 becomes 30"]},
    )
    page = open_page(console)
    page.get_by_role("button", name="Show all").click()
    panel(page, "Edit")
    page.locator('[data-kind="filter"]').drag_to(
        page.locator('[data-arrow="plausible:slow:0"] .room'), force=True
    )
    expect(page.get_by_text("filter_new is in the text")).to_be_visible()
    expect(page.get_by_role("button", name="Apply", exact=True)).to_be_disabled()
    page.get_by_role("button", name="What will it cost?").click()
    expect(page.get_by_label("What it will cost")).to_contain_text("nobody else notices")
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("40 becomes 30")
    sent = next(body for _, path, body in played.requests if path == "/api/edit/apply")
    assert "  filter_new:\n" in sent["yaml"]
    assert "    from: filter_new\n" in sent["yaml"]


def test_looking_only_has_no_controls_and_says_so(played: Played, console: str, open_page: OpenPage) -> None:
    played.status = {
        "changeable": False,
        "why_not": "this console only looks at a checkpoint",
        "state": "ended",
    }
    page = open_page(console)
    expect(page.get_by_text("looking only")).to_be_visible()
    expect(panel(page, "Step")).to_contain_text("only looks at a checkpoint")
    for name in ("Step", "QoS", "Edit", "Questions", "Past"):
        shown = panel(page, name)
        for control in ("Hold it", "Apply", "Ask", "Register", "What will it cost?"):
            expect(shown.get_by_role("button", name=control)).to_have_count(0)


def test_a_token_for_looking_only_has_no_controls(played: Played, console: str, open_page: OpenPage) -> None:
    played.answers["GET /api/me"] = 200, {"name": "guest", "may_change": False, "tokens": True}
    page = open_page(console)
    expect(page.get_by_text("looking only", exact=True)).to_be_visible()
    expect(panel(page, "Step")).to_contain_text("your token is for looking only")


def test_all_tabs_of_a_browser_share_one_stream(played: Played, console: str, open_page: OpenPage) -> None:
    pages = [open_page(console) for _ in range(3)]
    for page in pages:
        expect(page.get_by_text("live", exact=True)).to_be_visible()
    assert played.streams == 1
    pages[0].close()
    pages[1].wait_for_function("document.querySelector('header').innerText.includes('live')")
    expect(pages[2].get_by_text("live", exact=True)).to_be_visible()


def test_bookmarks_are_kept_by_the_server(played: Played, console: str, open_page: OpenPage) -> None:
    page = open_page(console)
    page.get_by_label("Name of this place").fill("the jam")
    view = {"x": 400.0, "y": 50.0, "scale": 1.5, "closed": ["clean"]}
    played.answers["GET /api/bookmarks"] = 200, {"bookmarks": [{"name": "the jam", "view": view}]}
    page.get_by_role("button", name="Keep", exact=True).click()
    page.get_by_role("button", name="the jam", exact=True).click()
    expect(card(page, "clean/")).to_be_visible()
    sent = next(body for method, path, body in played.requests if method == "PUT")
    assert set(sent["view"]) == {"x", "y", "scale", "closed"}


def test_a_query_is_checked_while_it_is_written(played: Played, console: str, open_page: OpenPage) -> None:
    def check(body: dict[str, Any]) -> tuple[int, Any]:
        if "spdd" in body["query"]:
            return 200, {"ok": False, "error": {"error": "no column 'spdd'", "line": 1, "column": 33}}
        return 200, {"ok": True, "columns": [{"name": "spd", "type": "INT"}]}

    played.answers["POST /api/attach/check"] = check
    page = open_page(console)
    shown = panel(page, "Questions")
    for word, told in [("spdd", "no column 'spdd'"), ("spd", "Gives spd INT")]:
        query = shown.get_by_role("textbox", name="Query")
        query.click()
        page.keyboard.press("Control+A")
        page.keyboard.type("S")
        expect(query).to_have_text("S")  # nobody types on before the old text is gone
        page.keyboard.type(f"ELECT spd FROM recent WHERE {word} < 9 ")
        expect(shown).to_contain_text(told)


def played_road() -> Played:
    """Linear Road's network in name, with two segments and a vehicle."""
    net = ps.Network("linear_road")
    net.output("tolls", net.source("reports", ps.rate(5)), to=ps.parquet("out/tolls"))
    segment = {"speed": 31.5, "vehicles": 61, "toll": 242, "accident": False}
    stopped = {"speed": None, "vehicles": None, "toll": None, "accident": True}
    answers = {"toll": {"answers": 9, "p50": 0.2, "p99": 0.9, "limit": 5.0, "late": 0, "waiting": None}}
    road = {"expressways": [0, 1], "expressway": 0, "direction": 0, "minute": 42, "answers": answers}
    vehicle = {
        "vid": 7,
        "position": {"seg": 3},
        "account": 484,
        "tolls": [{"toll": 242}],
        "alerts": [],
        "why": "61 cars, slow",
    }
    played = Played(net)
    played.answers["GET /api/road"] = (
        200,
        road | {"segments": [{"segment": 3, **segment}, {"segment": 4, **stopped}]},
    )
    played.answers["GET /api/road/vehicles/7"] = 200, vehicle
    return played


def test_linear_road_has_its_own_panel(open_page: OpenPage) -> None:
    played = played_road()
    with playing(played) as url:
        page = open_page(url)
        shown = panel(page, "Road")
        expect(
            shown.get_by_role("button", name="segment 3: 31.5 mph, 61 vehicles, toll 242")
        ).to_contain_text("$242")
        expect(shown.get_by_role("button", name="segment 4: unknown mph")).to_contain_text("✕")
        expect(shown.get_by_role("row", name="toll")).to_contain_text("200 ms")
        shown.get_by_label("Number").fill("7")
        shown.get_by_role("button", name="Look up").click()
        expect(shown).to_contain_text("61 cars, slow")
        expect(shown).to_contain_text("484")


def test_a_console_with_tokens_asks_for_one(played: Played, open_page: OpenPage) -> None:
    refusal = {"error": "the request has no valid token", "kind": "refused"}
    played.answers["GET /api/network"] = 401, refusal
    with playing(played) as url:
        page = open_page(url, ready="input[type=password]")
        page.get_by_label("Token").fill("secret")
        del played.answers["GET /api/network"]
        page.get_by_role("button", name="Enter").click()
        expect(card(page, "slow")).to_be_visible()
    assert ("POST", "/api/login", {"token": "secret"}) in played.requests
