"""A registered query and how its results are kept (PSoup, Sect. 3.5 and 4; P31).

If the client does not choose, this rule does:

- A selection or aggregate is kept as PSoup-P. Its matches arrive with the data anyway, and cutting them by a
  window costs microseconds.
- NoMat is used where keeping makes no sense: for a query without any factor, which every tuple matches, and
  for a snapshot of the past, which is asked for once.
- A join is kept as PSoup-C. Its results grow with the square of what is retained, and only those of the
  current window are needed. It becomes NoMat if the pairs are too many.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypedDict

from penstock.standing.answers.joins import Candidates, JoinedPairs, ProbeOrder
from penstock.standing.answers.results import CurrentWindow, Slots
from penstock.standing.errors import QueryError
from penstock.standing.language.query import StandingQuery
from penstock.standing.stems.data_stem import StreamPrefix

MODES = ("P", "C", "NoMat")
UNKEPT = -1  # the slot of a conjunction that is not in the Query SteM


class QueryDescription(TypedDict):
    """A standing query as clients see it in lists."""

    handle: str
    owner: str
    client: str
    query: str
    mode: str
    streams: list[str]
    windows: list[str]
    kinds: list[str]
    created: float
    invocations: int
    broken: str | None  # why it has no answer


@dataclass(eq=False)
class RegisteredQuery:
    """One standing query: its description, and what is kept of its results."""

    handle: str
    owner: str  # who may use it, and whose limit it counts for
    client: str  # a label of the owner's own
    query: StandingQuery
    mode: str
    slots: tuple[tuple[int, ...], ...] = ()  # of each branch, for each stream of FROM
    created: float = field(default_factory=time.time)
    current: CurrentWindow | None = None  # PSoup-C, selection
    pairs: JoinedPairs | None = None  # joins kept as P or C
    order: ProbeOrder = field(default_factory=ProbeOrder)
    # Joins: (branch, stream of FROM) -> the prefix that was examined, and what it gave.
    candidates: dict[tuple[int, int], tuple[StreamPrefix, Candidates]] = field(default_factory=dict)
    invocations: int = 0

    @property
    def lasting(self) -> bool:
        """Whether its matches stay with the data.

        They do for PSoup-P, and for joins, which probe old tuples again and again.
        """
        return self.mode == "P" or (self.mode == "C" and self.query.is_join)

    @property
    def keeps_results(self) -> bool:
        """Whether it keeps results that must be updated with each train."""
        return self.current is not None or self.pairs is not None

    def stream_slots(self) -> Iterator[tuple[str, int]]:
        """The stream and slot of each of its conjunctions."""
        for slots in self.slots:
            for part, slot in zip(self.query.parts, slots, strict=True):
                yield part.stream, slot

    @property
    def nbytes(self) -> int:
        """The bytes kept for it alone; matches lie with the data."""
        kept = (self.current.nbytes if self.current else 0) + (self.pairs.nbytes if self.pairs else 0)
        return kept + sum(candidates.nbytes for _, candidates in self.candidates.values())

    def selection(self, stream: int = 0) -> Slots:
        """Slot and conjunction of every branch, for one stream of FROM."""
        return [
            (slots[stream], branch.parts[stream])
            for slots, branch in zip(self.slots, self.query.branches, strict=True)
        ]

    def describe(self) -> QueryDescription:
        """The description that clients see in lists."""
        query = self.query
        return QueryDescription(
            handle=self.handle,
            owner=self.owner,
            client=self.client,
            query=query.text,
            mode=self.mode,
            streams=list(query.streams),
            windows=[str(window) for window in query.windows],
            kinds=[window.kind for window in query.windows],
            created=self.created,
            invocations=self.invocations,
            broken=None,
        )


def chosen_mode(query: StandingQuery, asked: str | None) -> str:
    """The mode that the client asks for, or that the rule gives.

    >>> chosen_mode(StandingQuery("", (), (), (), ()), "p")
    'P'
    """
    if asked is not None:
        names = {mode.lower(): mode for mode in MODES}
        if asked.lower().removeprefix("psoup-") not in names:
            raise QueryError(f"no way '{asked}' to keep results", expected=f"one of: {', '.join(MODES)}")
        return names[asked.lower().removeprefix("psoup-")]
    if query.is_join:
        return "C"
    bare = any(not branch.parts[0].spans and not branch.parts[0].residuals for branch in query.branches)
    return "NoMat" if (bare and not query.is_aggregate) or query.windows[0].kind == "snapshot" else "P"
