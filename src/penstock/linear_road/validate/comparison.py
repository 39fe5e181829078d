"""The comparison: each type's answers against the oracle's, as bags of rows.

Idea: rows that agree cancel out in one aggregation, and only the rest is examined. A left-over answer and a
left-over expectation with the same key (the tuple that triggered them) are one wrong answer. What then
remains is missing (only expected), duplicated (the trigger already has its answer) or unexpected (there is no
such trigger). Balances have many right answers: each right one is first replaced by the oracle's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import duckdb


@dataclass(frozen=True)
class AnswerType:
    """How answers of one type are named, compared and timed.

    `wrong` has an SQL condition for each kind of fault.
    """

    number: int
    name: str
    key: tuple[str, ...]
    values: tuple[str, ...]
    limit: int
    wrong: tuple[tuple[str, str], ...]


TYPES: tuple[AnswerType, ...] = (
    AnswerType(
        0,
        "toll notice",
        ("time", "vid"),
        ("lav", "toll"),
        5,
        (("wrong Lav", "e_lav <> g_lav"), ("wrong toll", "e_toll <> g_toll")),
    ),
    AnswerType(1, "accident alert", ("time", "vid"), ("seg",), 5, (("wrong segment", "e_seg <> g_seg"),)),
    AnswerType(
        2,
        "balance",
        ("time", "qid"),
        ("result", "bal"),
        5,
        (
            ("result time in the future", "g_result > time"),
            ("stale balance", "g_result < time - 60"),
            (
                "wrong balance",
                "g_result BETWEEN time - 60 AND time AND (e_result, e_bal) <> (g_result, g_bal)",
            ),
        ),
    ),
    AnswerType(
        3,
        "daily expenditure",
        ("time", "qid"),
        ("bal",),
        10,
        (("wrong daily expenditure", "e_bal <> g_bal"),),
    ),
    AnswerType(
        4,
        "travel time",
        ("time", "qid"),
        ("travel", "toll"),
        30,
        (("wrong travel time", "e_travel <> g_travel"), ("wrong travel toll", "e_toll <> g_toll")),
    ),
)
EARLY = "emitted before its time"
MISSING, UNEXPECTED, DUPLICATED, LATE = "missing", "unexpected", "duplicated", "late"
SHOWN = 3

# A balance may be up to 60 s old, so several pairs are right. Any right (ResultTime, Bal) counts as the
# oracle's own pair. ASOF finds the balance as of ResultTime. Two requests may share time and QID: then the
# join gives an answer twice, `id` makes it one again, and one right pair is enough.
RIGHT_BALANCES = """
CREATE TEMP TABLE judged_2 AS
WITH asked AS (SELECT g.*, e.vid, e.bal AS e_bal
               FROM (SELECT *, row_number() OVER () AS id FROM got_2) g
               LEFT JOIN expected_2 e USING (time, qid)),
     known AS (SELECT s.*, result BETWEEN s.time - 60 AND s.time AND s.bal = coalesce(a.bal, 0)
                      AND s.vid IS NOT NULL AS is_right
               FROM asked s ASOF LEFT JOIN accounts a ON a.vid = s.vid AND a.time <= s.result)
SELECT time, qid, emit, CASE WHEN bool_or(is_right) THEN time ELSE result END AS result,
       CASE WHEN bool_or(is_right) THEN any_value(e_bal) FILTER (is_right) ELSE bal END AS bal
FROM known GROUP BY id, time, qid, emit, result, bal"""

_EXPECTED = {2: "(SELECT time, qid, time AS result, bal FROM expected_2)"}
_GOT = {2: "judged_2"}


@dataclass
class Fault:
    """One wrong, missing, extra or late answer."""

    kind: str
    key: dict[str, int]
    expected: dict[str, int] | None
    got: dict[str, float] | None
    working: list[str] = field(default_factory=list)


@dataclass
class Result:
    """The verdict on one type: counts, response times in seconds, and the first faults of each kind."""

    type: AnswerType
    expected: int = 0
    got: int = 0
    right: int = 0
    wrong: int = 0
    missing: int = 0
    extra: int = 0
    late: int | None = None
    response: dict[str, float] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every expected answer is there, right, once and in time."""
        return not (self.wrong or self.missing or self.extra or self.late)


def compare(con: duckdb.DuckDBPyConnection, *, emits: bool, limits: bool) -> list[Result]:
    """Compare all types.

    `emits` checks Emit < Time and measures response times. `limits` counts late answers.
    """
    con.execute(RIGHT_BALANCES)
    return [_compare(con, answer, emits=emits, limits=limits) for answer in TYPES]


def _compare(con: duckdb.DuckDBPyConnection, answer: AnswerType, *, emits: bool, limits: bool) -> Result:
    result = Result(answer)
    result.expected = _one(con, f"SELECT count(*) FROM expected_{answer.number}")
    result.got = _one(con, f"SELECT count(*) FROM got_{answer.number}")
    # The order matters: `_faults` reads the left-overs, `_measure` adds late answers to the kinds that
    # `_count` found, and `_collect` shows all kinds.
    _leftovers(con, answer, early="emit < time::BIGINT * 1000" if emits else "false")
    _faults(con, answer)
    _count(con, result)
    if emits:
        _measure(con, result, limits=limits)
    _collect(con, result)
    return result


def _one(con: duckdb.DuckDBPyConnection, query: str) -> int:
    row = con.execute(query).fetchone()
    return int(row[0]) if row and row[0] is not None else 0


def _leftovers(con: duckdb.DuckDBPyConnection, answer: AnswerType, early: str) -> None:
    """What does not cancel out: rows that the oracle (e > g) or the system (g > e) has more often."""
    # `early` is part of the row: an answer that leaves before its time never cancels out.
    columns = ", ".join((*answer.key, *answer.values))
    expected = _EXPECTED.get(answer.number, f"expected_{answer.number}")
    got = _GOT.get(answer.number, f"got_{answer.number}")
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE leftovers AS
        SELECT {columns}, early, sum(e) AS e, sum(g) AS g
        FROM (SELECT {columns}, false AS early, 1 AS e, 0 AS g FROM {expected}
              UNION ALL SELECT {columns}, {early} AS early, 0 AS e, 1 AS g FROM {got})
        GROUP BY ALL HAVING sum(e) <> sum(g)""")


def _side(answer: AnswerType, more: str, less: str) -> str:
    """The left-over rows of one side, numbered within their key."""
    # A row that is left over three times becomes three rows. `n` then pairs the answers of a trigger with its
    # expectations, one to one.
    values = ", ".join(f"{name} AS {more}_{name}" for name in (*answer.values, "early"))
    key, order = ", ".join(answer.key), ", ".join(f"{more}_{name}" for name in (*answer.values, "early"))
    return f"""(SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY {order}) AS n
                FROM (SELECT {key}, {values}, unnest(range(({more} - {less})::BIGINT)) FROM leftovers
                      WHERE {more} > {less}))"""


def _faults(con: duckdb.DuckDBPyConnection, answer: AnswerType) -> None:
    """Pair the left-over rows by key and name what is wrong with each."""
    key = ", ".join(answer.key)
    wrong = "".join(f"CASE WHEN {condition} THEN '{kind}' END, " for kind, condition in answer.wrong)
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE faults AS
        SELECT *, CASE WHEN g_early IS NULL THEN ['{MISSING}']
                       WHEN e_early IS NULL AND known THEN ['{DUPLICATED}']
                       WHEN e_early IS NULL THEN ['{UNEXPECTED}']
                       ELSE list_filter([{wrong} CASE WHEN g_early THEN '{EARLY}' END],
                           lambda k: k IS NOT NULL)
                  END AS kinds
        FROM (SELECT *, ({key}) IN (SELECT ({key}) FROM expected_{answer.number}) AS known
              FROM {_side(answer, "e", "g")} FULL JOIN {_side(answer, "g", "e")} USING ({key}, n))""")


def _count(con: duckdb.DuckDBPyConnection, result: Result) -> None:
    result.missing = _one(con, "SELECT count(*) FROM faults WHERE g_early IS NULL")
    result.extra = _one(con, "SELECT count(*) FROM faults WHERE e_early IS NULL")
    result.wrong = _one(con, "SELECT count(*) FROM faults WHERE e_early IS NOT NULL AND g_early IS NOT NULL")
    # What is neither wrong nor extra has cancelled out.
    result.right = result.got - result.wrong - result.extra
    result.kinds = dict(
        con.execute(
            "SELECT k, count(*) FROM (SELECT unnest(kinds) AS k FROM faults) GROUP BY k ORDER BY k"
        ).fetchall()
    )


def _measure(con: duckdb.DuckDBPyConnection, result: Result, *, limits: bool) -> None:
    """Response times; limits apply to the run's own clock, so they need no speed-up."""
    # quantile_disc gives a response time that occurred, never one in between.
    row = con.execute(f"""
        SELECT quantile_disc(r, [0.5, 0.95, 0.99]), max(r), count(*) FILTER (r > {result.type.limit * 1000})
        FROM (SELECT emit - time::BIGINT * 1000 AS r FROM got_{result.type.number})""").fetchone()
    if row is None or row[1] is None:
        result.late = 0 if limits else None
        return
    names = ("p50", "p95", "p99", "max")
    result.response = {name: ms / 1000 for name, ms in zip(names, [*row[0], row[1]], strict=True)}
    if limits:
        result.late = int(row[2])
        if result.late:
            result.kinds[LATE] = result.late


def _collect(con: duckdb.DuckDBPyConnection, result: Result) -> None:
    """The first faults of each kind, by time."""
    after, limit = "emit - time::BIGINT * 1000", result.type.limit * 1000
    # A late answer may have the right values, so it is no row of `faults`. It is found by its Emit.
    timed = {LATE: f"{after} > {limit}", EARLY: f"{after} < 0"}
    for kind in result.kinds:
        rows = (
            _timed(con, result.type, kind, timed[kind]) if kind in timed else _first(con, result.type, kind)
        )
        result.faults += rows


def _first(con: duckdb.DuckDBPyConnection, answer: AnswerType, kind: str) -> list[Fault]:
    key = ", ".join(answer.key)
    rows = con.execute(
        f"SELECT * FROM faults WHERE list_contains(kinds, '{kind}') ORDER BY {key}, n LIMIT {SHOWN}"
    )
    names = [column[0] for column in rows.description or ()]
    return [_fault(answer, kind, dict(zip(names, row, strict=True))) for row in rows.fetchall()]


def _fault(answer: AnswerType, kind: str, row: dict[str, int]) -> Fault:
    expected = {name: row[f"e_{name}"] for name in answer.values} if row["e_early"] is not None else None
    got: dict[str, float] | None = None
    if row["g_early"] is not None:
        got = {name: row[f"g_{name}"] for name in answer.values}
    return Fault(kind, {name: row[name] for name in answer.key}, expected, got)


def _timed(con: duckdb.DuckDBPyConnection, answer: AnswerType, kind: str, condition: str) -> list[Fault]:
    """The first answers whose Emit breaks a condition."""
    key = ", ".join(answer.key)
    rows = con.execute(f"""
        SELECT {key}, emit FROM got_{answer.number} WHERE {condition}
        ORDER BY {key}, emit LIMIT {SHOWN}""").fetchall()
    return [_timed_fault(answer, kind, dict(zip((*answer.key, "emit"), row, strict=True))) for row in rows]


def _timed_fault(answer: AnswerType, kind: str, row: dict[str, int]) -> Fault:
    key = {name: row[name] for name in answer.key}
    after = row["emit"] / 1000 - row["time"]
    working = [f"emitted {after:.3f} s after its time; allowed are 0 to {answer.limit} s"]
    return Fault(kind, key, None, {"emit": row["emit"] / 1000}, working)
