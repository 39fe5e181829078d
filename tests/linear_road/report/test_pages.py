"""The page of a run and of a rating, the map of the road, and two results side by side."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from linear_road.golden_input import GOLDEN, needs_data
from penstock.cli.lr.commands import lr_app
from penstock.linear_road.errors import CompareError
from penstock.linear_road.network.road import road_network
from penstock.linear_road.report import Road, compare, load, rating_page, read_road, run_page, write_page

WAITS = {"answers": 40, "scored": 40, "p50": 0.5, "p95": 0.9, "p99": 1.25, "max": 2.5, "late": 0}
SAMPLES = [
    {
        "t": t,
        "wall": t,
        "cpu_s": 1.5 * t,
        "memory_mb": 900.0,
        "rows_in": 1000 * t,
        "rows_out": 300 * t,
        "backlog_s": 0.5,
    }
    for t in range(1, 6)
]
SERIES = {"samples": SAMPLES, "second": [0, 1, 2], "p50": [0.4, None, 0.5], "p99": [0.9, None, 1.1]}
COST = {
    "wall_s": 4.0,
    "cores": 1.5,
    "cpu_s": 6.0,
    "tuples_in_per_s": 1000.0,
    "tuples_out_per_s": 300.0,
    "memory_mb": 900.0,
}
RUN = {
    "kind": "linear-road-run",
    "finished": True,
    "valid": True,
    "speed": 1.0,
    "clock": "wall clock",
    "machine": {"cores": 2},
    "versions": {"python": "3.13"},
    "config": {"partitions": 2},
    "warm_up": {"seconds": 21.5},
    "input": {"rows": 5000, "xways": 1.5, "t0": 0, "t1": 600},
    "latency": {str(kind): WAITS for kind in range(5)},
    "answers": {str(kind): 40 + kind for kind in range(5)},
    "cost": COST,
    "series": SERIES,
}
TRIAL = {
    "L": 50,
    "pass": True,
    "late": 0,
    "wrong": 0,
    "confirming": True,
    "latency": RUN["latency"],
    "cost": COST,
    "series": SERIES,
}
RATING = {
    "kind": "linear-road-rating",
    "mode": "peak",
    "rating": 50,
    "confirmed": True,
    "scored_minutes": 15.0,
    "machine": {"cores": 2},
    "what_was_shortened": ["10 <shifted> copies"],
    "trials": [{**TRIAL, "confirming": False}, {**TRIAL, "L": 100, "pass": False, "late": 7}, TRIAL],
}


def checked(**changed: int) -> dict:
    figures = {
        "expected": 40,
        "got": 40,
        "right": 40,
        "wrong": 0,
        "missing": 0,
        "extra": 0,
        "late": 0,
        "response": {},
    }
    passed = not changed.get("wrong")
    return {"passed": passed, "types": {str(k): {**figures, **changed, "passed": passed} for k in range(5)}}


class _Addresses(HTMLParser):
    """Everything a page would fetch, and whether its elements are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def addresses(page: str) -> list[str]:
    parser = _Addresses()
    parser.feed(page)
    assert parser.open == []
    return parser.found


def test_a_page_fetches_nothing_and_holds_its_plots():
    found = addresses(
        run_page(
            RUN, verdict=checked(), road=Road(1, {3: {"speed": [(7, 30, 2)], "toll": [], "accident": []}})
        )
    )
    assert len(found) == 4
    for address in found:
        kind, _, body = address.partition(",")
        assert kind == "data:image/svg+xml;base64"
        assert b"</svg>" in base64.b64decode(body)


def test_the_table_of_answers():
    page = run_page(RUN, verdict=checked())
    assert "All answers hold." in page
    assert page.count(">PASS<") == 5
    row = re.search(r"<tr><td>4 travel time</td>(.*?)</tr>", page).group(1)
    assert re.findall(r">([^<]+)</(?:td|span)>", row) == [
        "44",
        "40",
        "40",
        "0",
        "0",
        "0",
        "0",
        "0.5",
        "0.9",
        "1.25",
        "2.5",
        "30",
        "PASS",
    ]


def test_wrong_stopped_and_unchecked_runs_say_so():
    assert "The answers do NOT hold." in run_page(RUN, verdict=checked(wrong=1))
    assert "The answers have not been checked." in run_page(RUN)
    assert "stopped before its end" in run_page({**RUN, "finished": False}, verdict=checked())


def test_a_late_driver_spoils_the_response_times_and_not_the_answers():
    driver = {"late_seconds": 3, "first_late": 1502, "lateness_ms": {"max": 2400}}
    page = run_page({**RUN, "valid": False, "driver": driver}, verdict=checked())
    assert "All answers hold." in page
    assert "late in 3 seconds of the data, first at second 1502, by up to 2.4 s" in page
    assert "run it again, alone or with a lower --speed" in page
    killed = run_page({**RUN, "valid": False, "driver": {}}, verdict=checked())
    assert "the run was interrupted" in killed


def test_a_run_at_maximum_speed_has_no_response_times():
    bare = {**RUN, "speed": "max", "latency": {}, "series": {"samples": SAMPLES}}
    page = run_page(bare, verdict=checked())
    assert "response time over time" not in page
    assert len(addresses(page)) == 3


def test_a_rating_shows_its_trials_and_what_it_is_not():
    page = rating_page(RATING)
    assert "<b>L = 50</b> (peak mode, confirmed by 15 scored minutes)" in page
    assert page.count(">PASS<") == 2
    assert page.count(">FAIL<") == 1
    assert "10 &lt;shifted&gt; copies" in page
    assert page.count("0.5 / 0.9 / 1.25 / 2.5") == 15
    assert len(addresses(page)) == 4
    assert "not confirmed" in rating_page({**RATING, "confirmed": False, "trials": []})


def test_copies_that_were_judged_together_give_counts():
    tally = {"expected": 40, "got": 39, "right": 39, "wrong": 0, "missing": 1, "extra": 0}
    counts = {str(kind): tally if kind == 1 else {**tally, "missing": 0} for kind in range(5)}
    page = rating_page({**RATING, "trials": [{**TRIAL, "validation": {"wrong": 1, "types": counts}}]})
    assert (page.count(">PASS<"), page.count(">FAIL<")) == (5, 1)


def test_a_page_is_written_whole(tmp_path):
    file = write_page(tmp_path / "report.html", run_page(RUN))
    assert file.read_text().startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


ROWS = [
    "0,0,1,30,0,1,0,0,100,-1,-1,-1,-1,-1,-1",
    "nonsense",
    "0,0,2,50,0,1,0,0,100,-1,-1,-1,-1,-1,-1",
    "2,5,2,-1,-1,-1,-1,-1,-1,3,-1,-1,-1,-1,-1",
    "0,61,1,20,0,1,1,9,48000,-1,-1,-1,-1,-1,-1",
]


def test_the_road_is_read_from_input_and_answers(tmp_path):
    (tmp_path / "rows.dat").write_text("\n".join(ROWS) + "\n")
    answers = ["0,1,0,0.5,-1,0", "0,2,0,0.5,30,800", "1,61,61.2,1,7", "2,5,5.1,5,3,0", "4,5,5.1,9,60,0"]
    (tmp_path / "answers.csv").write_text("\n".join(answers) + "\n")
    road = read_road(tmp_path / "rows.dat", tmp_path / "answers.csv")
    assert road == Road(
        1,
        {
            1: {"speed": [(0, 40, 2)], "toll": [(0, 800)], "accident": []},
            2: {"speed": [(109, 20, 1)], "toll": [], "accident": [107]},
        },
    )
    page = run_page(RUN, road=road)
    addresses(page)
    assert "segment 9: 1 cars, 20 mph, toll 0<" in page
    assert "segment 7: nobody, toll 0, accident<" in page
    assert '"toll":[[0,800]]' in page


def test_the_network_is_drawn_as_everywhere(tmp_path):
    net = road_network(None, tmp_path / "in", tmp_path / "out")
    page = run_page(RUN, network=net)
    assert net.to_svg() in page
    assert "fitted to the page" in page
    assert "The network" not in run_page(RUN)


@needs_data
def test_the_golden_road():
    road = read_road(GOLDEN / "rows.dat", GOLDEN / "expected.csv")
    assert sum(len(minute["toll"]) for minute in road.minutes.values()) > 10
    assert any(minute["accident"] for minute in road.minutes.values())


def test_a_comparison_has_ratios_and_marks_other_ground():
    faster = {
        **RATING,
        "rating": 200,
        "machine": {"cores": 4},
        "trials": [{**TRIAL, "L": 200, "cost": {**COST, "cpu_s": 3.0}}],
    }
    lines = {line.what: line for line in compare(RATING, faster)}
    assert lines["rating"].ratio == 4.0
    assert lines["toll notice p99 s"].ratio == 1.0
    assert (lines["cpu_s per million tuples"].a, lines["cpu_s per million tuples"].b) == (1500.0, 750.0)
    assert lines["machine: cores"].differs
    assert not lines["mode"].differs
    with pytest.raises(CompareError, match="a rating cannot be compared with a run"):
        compare(RATING, RUN)


def test_the_command(tmp_path):
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    a.write_text(json.dumps(RUN))
    b.write_text(json.dumps({**RUN, "machine": {"cores": 64}}))
    said = CliRunner().invoke(lr_app(["compare"]), ["compare", str(a), str(b)])
    assert said.exit_code == 0
    assert "Not on the same ground: machine: cores." in said.output
    b.write_text("{}")
    said = CliRunner().invoke(lr_app(["compare"]), ["compare", str(a), str(b)])
    assert (said.exit_code, "neither a rating.json nor a run.json" in said.stderr) == (2, True)
    with pytest.raises(CompareError, match="cannot be read: No such file"):
        load(tmp_path / "none.json")
