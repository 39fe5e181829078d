"""A registered query and how its results are kept (PSoup, Sect. 3.5 and 4; P31).

The rule, if the client does not choose: a selection or aggregate is kept as PSoup-P, because its matches arrive with the data anyway and cutting
them by a window costs microseconds; NoMat where keeping makes no sense: no factor at all, so that every tuple is a match, or a snapshot of the
past, which is asked for once. A join is kept as PSoup-C, since its results grow with the square of what is retained and only those of the
current window are needed; as NoMat if the pairs become too many.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from penstock.standing.answers.joins import JoinedPairs, ProbeOrder
from penstock.standing.answers.results import CurrentWindow, Slots
from penstock.standing.errors import QueryError
from penstock.standing.language.query import StandingQuery

MODES = ("P", "C", "NoMat")
UNKEPT = -1  # the slot of a conjunction that is not in the Query SteM


@dataclass(frozen=True)
class Limits:
    """What one client may have: standing queries, and rows in one answer."""

    queries: int = 10_000
    rows: int = 1_000_000


@dataclass(eq=False)
class RegisteredQuery:
    """One standing query: its description, and what is kept of its results."""

    handle: str
    client: str
    query: StandingQuery
    mode: str
    slots: tuple[tuple[int, ...], ...] = ()  # of each branch, for each stream of FROM
    created: float = field(default_factory=time.time)
    current: CurrentWindow | None = None  # PSoup-C, selection
    pairs: JoinedPairs | None = None  # joins kept as P or C
    order: ProbeOrder = field(default_factory=ProbeOrder)
    candidates: dict[tuple[int, int], Any] = field(
        default_factory=dict
    )  # joins: (branch, stream) -> of which prefix, which
    invocations: int = 0

    @property
    def lasting(self) -> bool:
        """Whether its matches stay with the data: for PSoup-P, and for joins, which probe old tuples again and again."""
        return self.mode == "P" or (self.mode == "C" and self.query.is_join)

    @property
    def nbytes(self) -> int:
        """What is kept for it alone; matches lie with the data."""
        kept = (self.current.nbytes if self.current else 0) + (self.pairs.nbytes if self.pairs else 0)
        return kept + sum(int(candidates.nbytes) for _, candidates in self.candidates.values())

    def selection(self, stream: int = 0) -> Slots:
        """Slot and conjunction of every branch, for one stream of FROM."""
        return [
            (slots[stream], branch.parts[stream])
            for slots, branch in zip(self.slots, self.query.branches, strict=True)
        ]

    def describe(self) -> dict[str, Any]:
        """For lists: what a client wants to see of it."""
        query = self.query
        return {
            "handle": self.handle, "client": self.client, "query": query.text, "mode": self.mode,
            "streams": list(query.streams), "windows": [str(w) for w in query.windows],
            "kinds": [w.kind for w in query.windows], "created": self.created, "invocations": self.invocations,
            "broken": None,
        }  # fmt: skip


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
