"""Whatever the query, the windows, the data and the moments, DuckDB gives the same on that prefix (P21)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.model.types import arrow_schema
from penstock.standing.answers.query_engine import Archived, QueryEngine
from penstock.standing.language.language import parse
from penstock.standing.stems import block, data_stem
from soak import count
from standing.random_cases import (
    INFOS,
    SCHEMAS,
    SECOND,
    Case,
    connection,
    expected,
    joins,
    rows_of,
    selections,
    trains,
)

SELECTIONS = count(800, soak=4000)
CON = connection()


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and merges at sizes that random trains reach."""
    monkeypatch.setattr(block, "MOST_ROWS", 16)
    monkeypatch.setattr(data_stem, "MOST_ROWS", 16)
    monkeypatch.setattr(data_stem, "_TIERS", (4, 8))
    monkeypatch.setattr(data_stem, "_FAN", 2)


class Files:
    """What connection points would keep: the trains of each stream, to be read again by time."""

    def __init__(self) -> None:
        self.trains: dict[str, list[pa.Table]] = {name: [] for name in SCHEMAS}

    def add(self, stream: str, train: pa.Table) -> int:
        self.trains[stream].append(train)
        return len(self.trains[stream]) - 1

    def read(self, stream: str, through: int, begin: int, end: int, most: float) -> Archived:
        found = pa.concat_tables(self.trains[stream][: through + 1])
        return Archived(found.filter((pc.field("_ts") >= begin) & (pc.field("_ts") <= end)))

    def tables(self) -> dict[str, pa.Table]:
        empty = {name: arrow_schema(schema).empty_table() for name, schema in SCHEMAS.items()}
        return {name: pa.concat_tables([empty[name], *trains]) for name, trains in self.trains.items()}


def play(
    case: Case,
    fed: list[tuple[str, pa.Table]],
    mode: str | None,
    moment: int,
    *,
    remove: bool,
    past: int | None = None,
    budget: int | None = None,
) -> None:
    """Register at a moment, invoke before and after every train, and compare.

    Something else is registered and removed meanwhile.

    `past`: also ask for the answer of an earlier second. `budget`: bytes of memory, beyond which tuples come
    from files.
    """
    files = Files()
    engine = QueryEngine(INFOS.values(), budget=budget, archive=files.read)
    asked = parse(case.text, INFOS).windows
    handle: Any = None
    other = engine.register("SELECT k FROM cars WHERE k > 1 AND v < 3").handle
    for number, (stream, table) in enumerate([("", None), *fed]):
        if table is not None:
            engine.insert(stream, table, entry=files.add(stream, table))
        if number >= moment and handle is None:
            handle = engine.register(case.text, mode=mode).handle
        if number == moment + 1 and remove:
            engine.unregister(other)
        if handle is not None:
            for at in {None, None if past is None else past * SECOND}:
                found = rows_of(engine.invoke(handle, at=at))
                assert found == expected(case, asked, files.tables(), CON, at)


_MODES = st.sampled_from([None, "P", "C", "NoMat"])
_PAST = st.one_of(st.none(), st.integers(90, 160))
_BUDGET = st.sampled_from([None, None, 0, 400, 2000])
_CALM: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [
        HealthCheck.too_slow,
        HealthCheck.function_scoped_fixture,
        HealthCheck.data_too_large,
    ],
}


@settings(max_examples=100, **_CALM)
@given(selections(), trains(), _MODES, st.integers(0, 4), st.booleans(), _PAST, _BUDGET)
def test_selections(
    case: Case, fed: Any, mode: str | None, moment: int, remove: bool, past: int | None, budget: int | None
) -> None:
    play(case, fed, mode, moment, remove=remove, past=past, budget=budget)


@settings(max_examples=60, **_CALM)
@given(joins(), trains(), _MODES, st.integers(0, 4), st.booleans(), _PAST, _BUDGET)
def test_joins(
    case: Case, fed: Any, mode: str | None, moment: int, remove: bool, past: int | None, budget: int | None
) -> None:
    play(case, fed, mode, moment, remove=remove, past=past, budget=budget)


def play_many(cases: st.SearchStrategy[Case], number: int) -> int:
    """Play so many random cases; returns how many there were."""
    played = 0

    @settings(max_examples=number, **_CALM)
    @given(cases, trains(8), _MODES, st.integers(0, 6), st.booleans(), _PAST, _BUDGET)
    def play_one(
        case: Case,
        fed: Any,
        mode: str | None,
        moment: int,
        remove: bool,
        past: int | None,
        budget: int | None,
    ) -> None:
        nonlocal played
        played += 1
        play(case, fed, mode, moment, remove=remove, past=past, budget=budget)

    play_one()
    return played


@pytest.mark.slow
def test_selections_thousands(record_property: Any) -> None:
    record_property("standing_cases", play_many(selections(), SELECTIONS))


@pytest.mark.slow
def test_joins_thousands(record_property: Any) -> None:
    record_property("standing_cases", play_many(joins(), SELECTIONS // 2))
