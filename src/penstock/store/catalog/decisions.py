"""What control decided, and how it stood when it last looked: kept in the catalog for `penstock qos`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.model.json_types import JsonMapping, JsonObject
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import Decision, Shed

_COLUMNS = "time, kind, subject, sentence, outputs, numbers, expected, realised, until"
FORM = "optimize"
"""The kind of decisions about the form of a sub-network. A form outlives the run, so these hold on."""


class Decisions:
    """The decisions in a catalog, bounded as its events are."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def record(self, decision: Decision) -> Decision:
        """Keep a decision; returns it with its number. It ends the one before of the same kind and subject.

        A decision with `until` at its own time is over at once: it only tells what happened.
        """
        texts = (json.dumps(each) for each in (decision.outputs, decision.numbers, decision.expected))
        row = (decision.time, decision.kind, decision.subject, decision.sentence, *texts)
        realised = json.dumps(dict(decision.realised))
        with self._catalog._writing() as db:
            end = "UPDATE decisions SET until = ? WHERE kind = ? AND subject = ? AND until IS NULL"
            db.execute(end, (decision.time, decision.kind, decision.subject))
            insert = f"INSERT INTO decisions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            number = db.execute(insert, (*row, realised, decision.until)).lastrowid or 0
            if number % 64 == 0:  # now and then is often enough
                db.execute("DELETE FROM decisions WHERE id <= ?", (number - self._catalog.keep,))
        return replace(decision, id=number)

    def realised(self, number: int, figures: Mapping[str, float]) -> None:
        """Note what a decision has achieved."""
        with self._catalog._writing() as db:
            db.execute("UPDATE decisions SET realised = ? WHERE id = ?", (json.dumps(dict(figures)), number))

    def end(self, kind: str, subject: str, at: float) -> None:
        """Note that a decision no longer holds."""
        with self._catalog._writing() as db:
            sql = "UPDATE decisions SET until = ? WHERE kind = ? AND subject = ? AND until IS NULL"
            db.execute(sql, (at, kind, subject))

    def end_all(self, at: float) -> None:
        """Note that a run is over: nothing that was decided in it holds any more, except for forms."""
        with self._catalog._writing() as db:
            db.execute("UPDATE decisions SET until = ? WHERE kind != ? AND until IS NULL", (at, FORM))

    def last(self, count: int = 1000, *, after: int = 0) -> list[Decision]:
        """The last decisions with a number above `after`, oldest first."""
        sql = f"SELECT {_COLUMNS}, id FROM decisions WHERE id > ? ORDER BY id DESC LIMIT ?"
        return [_decision(row) for row in self._catalog._rows(sql, after, count)][::-1]

    def keep_state(self, name: str, at: float, body: JsonMapping) -> None:
        """Keep what control knows under a name, in place of what was there."""
        with self._catalog._writing() as db:
            row = (name, at, json.dumps(body))
            db.execute("INSERT OR REPLACE INTO control VALUES (?, ?, ?)", row)

    def state(self, name: str) -> tuple[float, JsonObject] | None:
        """What was kept last under a name, and when; None if nothing was."""
        rows = self._catalog._rows("SELECT time, body FROM control WHERE name = ?", name)
        return (rows[0][0], json.loads(rows[0][1])) if rows else None

    def sheds(self, subnetwork: str, last: int = 100) -> list[tuple[int, Shed]]:
        """What valves did in the last trains, with the train's number, oldest first."""
        sql = """SELECT train, valve, offered, shed FROM sheds WHERE subnetwork = ?
                 ORDER BY train DESC, valve LIMIT ?"""
        return [(row[0], Shed(*row[1:])) for row in self._catalog._rows(sql, subnetwork, last)][::-1]


def _decision(row: tuple[Any, ...]) -> Decision:
    at, kind, subject, sentence, outputs, numbers, expected, realised, until, number = row
    return Decision(
        time=at,
        kind=kind,
        subject=subject,
        sentence=sentence,
        outputs=tuple(json.loads(outputs)),
        numbers=json.loads(numbers),
        expected=json.loads(expected),
        realised=json.loads(realised),
        until=until,
        id=number,
    )
