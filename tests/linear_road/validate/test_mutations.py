"""The validator must catch what it should: right answers corrupted in many ways, each found with its kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from linear_road.golden_input import GOLDEN, balance, lines, needs_data, report
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.validate import Verdict, validate
from penstock.linear_road.validate.answer_files import read_answers
from penstock.linear_road.validate.comparison import compare
from penstock.linear_road.validate.oracle import Oracle, consult, workspace
from penstock.linear_road.validate.report import add_answers, new_verdict

pytestmark = needs_data
Row = list[str]
Mutation = Callable[[list[Row], Oracle], None]


@pytest.fixture(scope="module")
def oracle():
    with workspace() as con:
        yield consult(con, open_input(GOLDEN / "rows.dat"), GOLDEN)


@pytest.fixture
def right() -> list[Row]:
    return [line.split(",") for line in lines(GOLDEN / "expected.csv")]


def judge(oracle: Oracle, tmp_path: Path, rows: list[Row], *, emits: bool = True) -> Verdict:
    file = tmp_path / "answers.csv"
    file.write_text("".join(",".join(row) + "\n" for row in rows))
    for kind in range(5):
        oracle.con.execute(f"DROP TABLE IF EXISTS got_{kind}")
    oracle.con.execute("DROP TABLE IF EXISTS judged_2")
    verdict = new_verdict(file, oracle)
    add_answers(verdict, read_answers(oracle.con, file))
    verdict.results = compare(oracle.con, emits=emits, limits=emits)
    return verdict


def kinds(verdict: Verdict) -> dict[int, dict[str, int]]:
    return {result.type.number: result.kinds for result in verdict.results if result.kinds}


def pick(rows: list[Row], kind: str, where: Callable[[Row], bool] = lambda _row: True) -> Row:
    found = [row for row in rows if row[0] == kind and where(row)]
    return found[len(found) // 2]


def change(kind: str, field: int, by: int, where: Callable[[Row], bool] = lambda _row: True) -> Mutation:
    def mutate(rows: list[Row], _oracle: Oracle) -> None:
        row = pick(rows, kind, where)
        row[field] = str(int(row[field]) + by)

    return mutate


def remove(kind: str, where: Callable[[Row], bool] = lambda _row: True) -> Mutation:
    return lambda rows, _oracle: rows.remove(pick(rows, kind, where))


def duplicate(kind: str) -> Mutation:
    return lambda rows, _oracle: rows.append(list(pick(rows, kind)))


def duplicate_with_another_value(rows: list[Row], _oracle: Oracle) -> None:
    rows.append([*pick(rows, "0")[:5], "7"])


def a_minute_late(rows: list[Row], _oracle: Oracle) -> None:
    row = pick(rows, "1")
    row[1] = row[2] = str(int(row[1]) + 60)


def extra_notice(rows: list[Row], oracle: Oracle, where: str) -> None:
    """A notice for a report that gives none."""
    vid, time = oracle.con.execute(
        f"""SELECT vid, time FROM reports_0 r WHERE {where} AND NOT EXISTS
            (SELECT * FROM expected_0 e WHERE e.vid = r.vid AND e.time = r.time) ORDER BY time, vid LIMIT 1"""
    ).fetchone()
    rows.append(["0", str(vid), str(time), str(time), "30", "0"])


def toll_of_the_minute_before(rows: list[Row], oracle: Oracle) -> None:
    vid, time, toll = oracle.con.execute(
        """SELECT e.vid, e.time, q.toll FROM expected_0 e JOIN quotes q
           ON q.xway = e.xway AND q.dir = e.dir AND q.seg = e.seg AND q.minute = e.time // 60
               WHERE q.toll <> e.toll
           ORDER BY e.time, e.vid LIMIT 1"""
    ).fetchone()
    row = next(row for row in rows if row[:3] == ["0", str(vid), str(time)])
    row[5] = str(toll)


def charge_never_due(rows: list[Row], oracle: Oracle) -> None:
    """A balance with the toll of a notice whose segment the vehicle has not left by a crossing."""
    qid, toll = oracle.con.execute(
        """SELECT r.qid, max(n.toll) FROM expected_2 r JOIN expected_0 n ON n.vid = r.vid
           AND n.time < r.time - 60
           WHERE n.toll > 0 AND NOT EXISTS (SELECT * FROM charges c WHERE c.vid = n.vid AND c.quoted = n.time)
           GROUP BY r.qid ORDER BY r.qid LIMIT 1"""
    ).fetchone()
    row = next(row for row in rows if row[0] == "2" and row[4] == str(qid))
    row[5] = str(int(row[5]) + toll)


def balance_of(rows: list[Row], oracle: Oracle, age: int) -> None:
    """A balance exact as of `age` seconds before its request, in an account charged since then."""
    qid, bal = oracle.con.execute(
        f"""SELECT qid, (SELECT coalesce(sum(toll), 0) FROM charges c
             WHERE c.vid = r.vid AND c.time <= r.time - {age})
            FROM expected_2 r WHERE EXISTS (SELECT * FROM charges c WHERE c.vid = r.vid
            AND c.time BETWEEN r.time - {age} + 1 AND r.time) ORDER BY time, qid LIMIT 1"""
    ).fetchone()
    row = next(row for row in rows if row[0] == "2" and row[4] == str(qid))
    row[3], row[5] = str(int(row[1]) - age), str(int(bal))


def result_time_only(rows: list[Row], oracle: Oracle, age: int) -> None:
    """Today's balance under an older ResultTime at which it was not yet right."""
    before = {row[4]: row[5] for row in rows if row[0] == "2"}
    balance_of(rows, oracle, age)
    row = next(row for row in rows if row[0] == "2" and row[3] != row[1])
    row[5] = before[row[4]]


MUTATIONS: dict[str, tuple[Mutation, dict[int, dict[str, int]]]] = {
    "off-by-one Lav": (change("0", 4, 1), {0: {"wrong Lav": 1}}),
    "wrong toll": (change("0", 5, 2, lambda row: row[5] != "0"), {0: {"wrong toll": 1}}),
    "toll from the wrong minute": (toll_of_the_minute_before, {0: {"wrong toll": 1}}),
    "missing notice": (remove("0"), {0: {"missing": 1}}),
    "missing alert": (remove("1"), {1: {"missing": 1}}),
    "missing balance": (remove("2"), {2: {"missing": 1}}),
    "missing daily": (remove("3"), {3: {"missing": 1}}),
    "missing travel": (remove("4"), {4: {"missing": 1}}),
    "alert one minute late": (a_minute_late, {1: {"missing": 1, "unexpected": 1}}),
    "alert naming a farther segment": (
        change("1", 4, 1, lambda row: int(row[4]) < 99),
        {1: {"wrong segment": 1}},
    ),
    "charge never due": (charge_never_due, {2: {"wrong balance": 1}}),
    "stale balance beyond 60 s": (
        lambda rows, oracle: balance_of(rows, oracle, 61),
        {2: {"stale balance": 1}},
    ),
    "right balance, ResultTime beyond 60 s": (change("2", 3, -61), {2: {"stale balance": 1}}),
    "balance of another ResultTime": (
        lambda rows, oracle: result_time_only(rows, oracle, 60),
        {2: {"wrong balance": 1}},
    ),
    "ResultTime in the future": (change("2", 3, 1), {2: {"result time in the future": 1}}),
    "wrong balance": (change("2", 5, 2), {2: {"wrong balance": 1}}),
    "wrong daily": (change("3", 4, 1), {3: {"wrong daily expenditure": 1}}),
    "wrong travel time": (change("4", 4, -1), {4: {"wrong travel time": 1}}),
    "wrong travel toll": (change("4", 5, 1), {4: {"wrong travel toll": 1}}),
    "unknown QID": (change("3", 3, 1_000_000), {3: {"missing": 1, "unexpected": 1}}),
    "duplicate notice": (duplicate("0"), {0: {"duplicated": 1}}),
    "duplicate alert": (duplicate("1"), {1: {"duplicated": 1}}),
    "duplicate balance": (duplicate("2"), {2: {"duplicated": 1}}),
    "second notice with another toll": (duplicate_with_another_value, {0: {"duplicated": 1}}),
    "notice in lane 4": (lambda rows, oracle: extra_notice(rows, oracle, "lane = 4"), {0: {"unexpected": 1}}),
    "notice without a crossing": (
        lambda rows, oracle: extra_notice(rows, oracle, "lane = 2"),
        {0: {"unexpected": 1}},
    ),
    "Emit before Time": (change("0", 3, -1), {0: {"emitted before its time": 1}}),
    "late notice": (change("0", 3, 6), {0: {"late": 1}}),
    "late alert": (change("1", 2, 6), {1: {"late": 1}}),
    "late balance": (change("2", 2, 6), {2: {"late": 1}}),
    "late daily": (change("3", 2, 11), {3: {"late": 1}}),
    "late travel": (change("4", 2, 31), {4: {"late": 1}}),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_mutation_is_found_with_its_kind(oracle, tmp_path, right, name):
    mutate, wanted = MUTATIONS[name]
    mutate(right, oracle)
    verdict = judge(oracle, tmp_path, right)
    assert kinds(verdict) == wanted
    assert not verdict.passed
    assert {result.type.number for result in verdict.results if not result.passed} == set(wanted)


@pytest.mark.parametrize(
    ("kind", "emit", "limit"), [("0", 3, 5), ("1", 2, 5), ("2", 2, 5), ("3", 2, 10), ("4", 2, 30)]
)
def test_exactly_the_limit_is_in_time(oracle, tmp_path, right, kind, emit, limit):
    row = pick(right, kind)
    time = int(row[emit])
    row[emit] = f"{time + limit}.000"
    assert judge(oracle, tmp_path, right).passed
    row[emit] = f"{time + limit}.001"
    assert kinds(judge(oracle, tmp_path, right)) == {int(kind): {"late": 1}}


@pytest.mark.parametrize("age", [1, 30, 60])
def test_any_right_result_time_is_accepted(oracle, tmp_path, right, age):
    balance_of(right, oracle, age)
    assert judge(oracle, tmp_path, right).passed


def test_less_than_a_thousandth_is_not_cut_off(oracle, tmp_path, right):
    late, uneven = pick(right, "0"), pick(right, "2")
    late[3] = f"{int(late[2]) + 5}.0004"
    uneven[5] += ".0001"
    verdict = judge(oracle, tmp_path, right)
    assert (kinds(verdict), verdict.unreadable) == ({0: {"late": 1}, 2: {"missing": 1}}, 1)


def test_emit_is_not_looked_at_without_response_times(oracle, tmp_path, right):
    for mutate in (change("0", 3, 600), change("2", 2, -5)):
        mutate(right, oracle)
    assert judge(oracle, tmp_path, right, emits=False).passed


def test_counts_add_up_when_much_is_wrong(oracle, tmp_path, right):
    notices = [row for row in right if row[0] == "0"]
    for row in notices[:100]:
        row[4] = str(int(row[4]) + 1)
    rows = right[:]
    for row in notices[100:150]:
        rows.remove(row)
    rows += [list(row) for row in notices[200:230]]
    result = judge(oracle, tmp_path, rows).results[0]
    assert (result.wrong, result.missing, result.extra) == (100, 50, 30)
    assert result.right == result.got - 130 == result.expected - 150


@pytest.mark.parametrize("row", ["hello", "5,1,2,3,4,5", "0,1,2,3,4", "0,1.5,2,3,4,5", "1,2,3,4,5,6"])
def test_unreadable_answers_fail(oracle, tmp_path, right, row):
    verdict = judge(oracle, tmp_path, [*right, row.split(",")])
    assert (verdict.unreadable, verdict.unreadable_rows, verdict.passed) == (1, [row], False)


def test_charge_on_the_exit_ramp(tmp_path):
    """The golden data has no balance request after such an exit, so this one is made here."""
    crowd = [report(n, 100 + n, 100, spd=20) for n in range(54)]
    source = tmp_path / "rows.dat"
    exits = [report(60, 1, 200), report(90, 1, 300, lane=4), balance(100, 1, 7)]
    source.write_text("\n".join([*crowd, *exits]) + "\n")
    file = tmp_path / "answers.csv"
    validate(source, expected=file)
    right = file.read_text()
    assert "0,1,60,60,20,32" in right
    file.write_text(right.replace("2,100,100,100,7,0", "2,100,100,100,7,32"))
    assert kinds(validate(source, answers=file)) == {2: {"wrong balance": 1}}
