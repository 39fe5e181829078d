"""Ad-hoc queries that clients attach (A30): history first, then live; let go, or kept as a view (A28).

Rows wait for the client in a bounded list. A query that nobody reads for ten minutes is detached.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.model.errors import did_you_mean
from penstock.model.formats.callback import callback
from penstock.model.json_types import JsonObject
from penstock.model.types import Schema
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork, at_point
from penstock.runtime import Runtime
from penstock.web.act.monitors import Tell
from penstock.web.act.query_text import build_of
from penstock.web.errors import RefusedChangeError, UnknownNameError
from penstock.web.look.rows_json import json_rows

_KEPT = 2_000  # rows that wait for a client
_PATIENCE = 600.0  # seconds
_MOST = 20  # queries of clients at once
_END = "answer"


@dataclass
class Question:
    """A query of a client and its last rows."""

    name: str
    point: str
    query: str
    by: str
    view: bool
    columns: list[JsonObject]
    read: float
    rows: deque[JsonObject] = field(default_factory=lambda: deque(maxlen=_KEPT))
    next: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def describe(self) -> JsonObject:
        keys = ("name", "point", "query", "by", "view", "columns")
        return {**{key: getattr(self, key) for key in keys}, "rows": self.next}


class Questions:
    """The ad-hoc queries that came through the console."""

    def __init__(self, runtime: Runtime, tell: Tell, clock: Callable[[], float] = time.monotonic) -> None:
        self._runtime, self._tell, self._clock = runtime, tell, clock
        self._asked: dict[str, Question] = {}

    def check(self, point: str, query: str) -> list[JsonObject]:
        """The columns of the answer; refuses a query that cannot be attached."""
        return checked(self._runtime.network, point, query)

    def attach(self, point: str, query: str, name: str, keep: str, by: str) -> JsonObject:
        """Start a query. With `keep` it becomes a view."""
        columns = self.check(point, query)
        if len(self._asked) >= _MOST:
            raise RefusedChangeError(f"{_MOST} queries are attached already", hint="detach some")
        name = name or self._free_name()
        question = Question(name, point, query, by, bool(keep), columns, self._clock())
        if keep:
            self._runtime.attach_view(name, point, build_of(query, point), keep=keep)
        else:
            to = callback(lambda table: self._take(question, table))
            self._runtime.attach(name, point, build_of(query, point), to=to)
        self._asked[name] = question
        return question.describe()

    def _free_name(self) -> str:
        number = 1
        while f"query_{number}" in self._runtime.queries or f"query_{number}" in self._asked:
            number += 1
        return f"query_{number}"

    def _take(self, question: Question, table: pa.Table) -> None:
        """Keep the last rows. It runs in the train's thread: only what a client can still read is copied."""
        first = max(0, table.num_rows - _KEPT)
        now, rows = time.time(), json_rows(table.slice(first))
        with question.lock:
            question.next += first
            for row in rows:
                question.rows.append({"n": question.next, "at": now, "tuple": row})
                question.next += 1
        body = {"name": question.name, "next": question.next}
        self._tell("rows", body, f"rows {question.name}")

    def rows(self, name: str, after: int, limit: int) -> JsonObject:
        """The rows of a query from number `after` on."""
        question = self._known(name)
        question.read = self._clock()
        with question.lock:
            rows = [row for row in question.rows if row["n"] >= after][:limit]
            following = rows[-1]["n"] + 1 if rows else max(after, question.next - len(question.rows))
            return {**question.describe(), "rows": rows, "next": following, "total": question.next}

    def detach(self, name: str) -> None:
        """End a query or an attached view."""
        if name not in self._runtime.queries:
            known = [*self._asked]
            raise UnknownNameError(f"no attached query '{name}'", hint=did_you_mean(name, known))
        if name in {sub.name for sub in self._runtime.subs}:
            raise RefusedChangeError(f"'{name}' belongs to the network", hint="edit the network instead")
        self._runtime.detach(name)
        self._asked.pop(name, None)

    def expire(self) -> None:
        """Detach what nobody reads."""
        now = self._clock()
        for question in list(self._asked.values()):
            if question.name not in self._runtime.queries:
                self._asked.pop(question.name, None)
            elif not question.view and now - question.read > _PATIENCE:
                self.detach(question.name)

    def end(self) -> None:
        """Detach the queries whose rows only we can show."""
        for question in list(self._asked.values()):
            if not question.view and question.name in self._runtime.queries:
                self.detach(question.name)

    def attached(self) -> list[JsonObject]:
        """All of them."""
        return [question.describe() for question in list(self._asked.values())]

    def _known(self, name: str) -> Question:
        if name not in self._asked:
            raise UnknownNameError(f"no attached query '{name}'", hint=did_you_mean(name, self._asked))
        return self._asked[name]


def checked(network: Network, point: str, query: str) -> list[JsonObject]:
    """The columns of a query's answer, by building it without running it."""
    sub: SubNetwork = at_point(network, point, _END, build_of(query, point), to=callback(lambda _: None))
    schema: Schema = sub.network.types[_END].schema
    return [{"name": column.name, "type": column.type} for column in schema]
