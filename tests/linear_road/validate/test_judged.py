"""Expressways are left out and come back: what is judged is right, the rest is not asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from linear_road.golden_input import balance, by_time, daily, report, travel
from linear_road.road_run import delivered
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.contract.valve import Valve, group_stays
from penstock.linear_road.network import answer_files, road_network
from penstock.linear_road.rows.copies import Copies
from penstock.linear_road.validate import validate
from penstock.linear_road.validate.judged import Inexact, exact_throughout, inexact
from penstock.linear_road.validate.shifted import JudgedCopies, Overload, validate_copies
from penstock.runtime.records import left_out
from penstock.store.catalog.record_types import Event
from penstock.testing.dry_run import DryRun

XWAYS, SECONDS, EVERY = 4, 900, 10  # reports come every so many seconds
OUT_FROM, BACK_AT = 130, 200
SHARE = 0.5
GONE = [xway for xway in range(XWAYS) if not group_stays(SHARE, xway)]


def drive(xway: int, vid: int, i: int, t: int) -> str:
    """To and fro between two segments, so that both are always crowded; speeds change with the minutes."""
    pos = 5280 * (10 + (t // 30 + i) // 3 % 2) + 100 + 7 * (t // 30) + 20 * (i % 100)
    return report(t, vid, pos, spd=8 + (t // 60 * 7 + i) % 25, xway=xway, lane=1 + i % 3)


def crowd() -> list[str]:
    """On each expressway a slow crowd that pays tolls; vehicles 9xxx drive on two of them, one by one."""
    rows = []
    for xway in range(XWAYS):
        for i in range(120):
            vid = 1000 * xway + i
            for k, t in enumerate(range(i % 3 * EVERY, SECONDS, 30)):
                rows.append(drive(xway, vid, i, t))
                if (i + k) % 7 == 0:
                    rows.append(balance(t, vid, len(rows)))
                if (i + k) % 31 == 0:
                    rows.append(daily(t, vid, len(rows), 3, xway))
                    rows.append(travel(t, vid, len(rows), 3, 9, 2, 700, xway))
    for i in range(12):
        first, then = i % XWAYS, (i + 1 + i // XWAYS) % XWAYS
        for t in range(i % 3 * EVERY, SECONDS, 30):
            rows.append(drive(first if t < SECONDS // 2 else then, 9000 + i, i, t))
            rows.append(balance(t, 9000 + i, len(rows)))
    return by_time(*rows)


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which the groups that a valve at 0.5 leaves out are gone for some time."""
    out = tmp_path_factory.mktemp("run")
    rows = out / "rows.dat"
    rows.write_text("\n".join(crowd()) + "\n")
    delivered(rows, out, groups=XWAYS)
    known: dict[str, left_out.Groups] = {}
    events: list[Event] = []

    def listen(done: TrainDone) -> None:
        account = done.commit.accounts["rows"]
        assert account.balanced
        assert account.shed == sum(left.tuples for left in done.ticket.shed.values())
        for source, (begin, groups) in left_out.changes(done.ticket, known).items():
            known[source] = groups
            events.append(Event(left_out.EVENT, source, 0.0, left_out.detail(begin, groups)))

    net = road_network(None, out / "in", out / "answers")
    run = DryRun(net, out / "checkpoint", length=1, partitions=2, listen=listen)
    for second in range(0, SECONDS, EVERY):
        closed = OUT_FROM <= second < BACK_AT
        run.query.steering.valves = (Valve("rows", SHARE, "keys"),) if closed else ()
        assert run.train()
    run.run_all()
    absences = left_out.absences(events)
    assert {each.group for each in absences} == set(GONE)
    assert {(each.begin // 10**6, (each.end or 0) // 10**6) for each in absences} == {(OUT_FROM, BACK_AT)}
    text = "".join(file.read_text() for file in answer_files(out / "answers"))
    (out / "judged").mkdir()
    (out / "judged" / "answers.csv").write_text(text)
    out_at = [{"xways": [each.group], "begin": OUT_FROM, "until": BACK_AT} for each in absences]
    (out / "judged" / "run.json").write_text(json.dumps({"speed": "max", "left_out": out_at}))
    return out


def test_some_are_left_out_and_some_are_not() -> None:
    assert 0 < len(GONE) < XWAYS


def test_what_is_judged_is_right(answered: Path) -> None:
    verdict = validate(answered / "rows.dat", answers=answered / "judged")
    assert verdict.passed, [result.kinds for result in verdict.results]
    assert verdict.left_out == len(GONE)
    judged, whole = {r.type.number: r.expected for r in verdict.results}, verdict.expected
    assert all(0 < judged[kind] < whole[kind] for kind in (0, 2, 3, 4)), "some of it is not judged"


def test_without_the_list_it_is_wrong(answered: Path, tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text((answered / "judged" / "answers.csv").read_text())
    verdict = validate_copies(tmp_path, [JudgedCopies(answered / "rows.dat", range(1))], Copies())
    assert verdict.types[0].missing
    assert verdict.types[0].extra, "first reports of trips that are none"
    assert verdict.types[2].wrong


def test_less_than_five_minutes_is_too_early(answered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.linear_road.validate.judged._LOOKS_BACK", 0)
    verdict = validate(answered / "rows.dat", answers=answered / "judged")
    assert verdict.results[0].kinds.get("wrong Lav")


def test_a_wrong_answer_of_a_judged_expressway_is_found(answered: Path, tmp_path: Path) -> None:
    kept = min(set(range(XWAYS)) - set(GONE))
    lines = (answered / "judged" / "answers.csv").read_text().splitlines()
    spoilt = next(line for line in lines if line.startswith(f"0,{1000 * kept + 5},"))
    lines.remove(spoilt)
    (tmp_path / "answers.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "run.json").write_text((answered / "judged" / "run.json").read_text())
    verdict = validate(answered / "rows.dat", answers=tmp_path)
    assert [result.missing for result in verdict.results] == [1, 0, 0, 0, 0]


@pytest.mark.parametrize(("begin", "kept"), [(0, XWAYS - len(GONE)), (540, XWAYS), (539, XWAYS - len(GONE))])
def test_expressways_kept_exact_and_in_time(answered: Path, begin: int, kept: int) -> None:
    out = json.loads((answered / "judged" / "run.json").read_text())["left_out"]
    verdict = validate_copies(
        answered / "judged",
        [JudgedCopies(answered / "rows.dat", range(1))],
        Copies(),
        overload=Overload(out, begin, SECONDS),
    )
    assert (verdict.wrong, verdict.late, len(verdict.kept)) == (0, 0, kept), verdict.faults


def test_nothing_is_kept_of_what_is_late(answered: Path, tmp_path: Path) -> None:
    kept = min(set(range(XWAYS)) - set(GONE))
    lines = (answered / "judged" / "answers.csv").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"0,{1000 * kept + 5},"))
    kind, vid, time, _, *rest = lines[at].split(",")
    lines[at] = ",".join([kind, vid, time, f"{int(time) + 5.001:.3f}", *rest])
    (tmp_path / "answers.csv").write_text("\n".join(lines) + "\n")
    out = json.loads((answered / "judged" / "run.json").read_text())["left_out"]
    parts = [JudgedCopies(answered / "rows.dat", range(1))]
    verdict = validate_copies(tmp_path, parts, Copies(), overload=Overload(out, int(time), SECONDS))
    assert (verdict.late, verdict.wrong) == (1, 0)
    assert verdict.kept == []


def test_spans() -> None:
    assert inexact([{"xways": [3, 4], "begin": 10, "until": 61}]) == [
        Inexact(3, 10, 420),
        Inexact(4, 10, 420),
    ]
    spans = [Inexact(1, 10, 420), Inexact(2, 800, 1200)]
    assert exact_throughout(range(4), spans, 420, 800) == [0, 1, 2, 3]
    assert exact_throughout(range(4), spans, 419, 801) == [0, 3]
