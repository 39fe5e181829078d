"""What a run under control leaves for the next one: shares that were in force, and from when on all is exact.

After a crash under overload the shares hold until the loop confirms or opens them. An overload of yesterday
says nothing about today: what is older than a minute does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.control.loop.exactness import Exactness
from penstock.control.report import MEMORY, REPORT
from penstock.store.catalog.decisions import Decisions

_MOST_AGE = 60.0  # seconds


@dataclass(frozen=True)
class LeftBehind:
    """`kept`: the part of the load. `shares`: by output. `exact`: what is known of outputs and points."""

    kept: float = 1.0
    shares: Mapping[str, float] = field(default_factory=dict)
    exact: Mapping[str, Exactness] = field(default_factory=dict)

    @property
    def shut(self) -> list[str]:
        """The outputs that were losing tuples."""
        return [name for name, share in self.shares.items() if share < 1]

    def without_shares(self) -> LeftBehind:
        """All open; what was lost is lost all the same."""
        return LeftBehind(exact=self.exact)


def left_behind(decisions: Decisions) -> LeftBehind:
    """What the last run has left."""
    kept = decisions.state(MEMORY)
    body = {} if kept is None else kept[1]
    return LeftBehind(
        float(body.get("kept", 1.0)),
        dict(body.get("shares", {})),
        {name: Exactness(*each) for name, each in body.get("exact", {}).items()},
    )


def is_recent(decisions: Decisions, now: float) -> bool:
    """Whether the last run was under control a moment ago."""
    states = [state for state in map(decisions.state, (MEMORY, REPORT)) if state is not None]
    # A clock that was set back says nothing either.
    return any(abs(now - at) <= _MOST_AGE for at, _ in states)


def leave(decisions: Decisions, left: LeftBehind, now: float) -> None:
    """Keep it for the next run."""
    exact = {name: (each.since, each.newest) for name, each in left.exact.items()}
    decisions.keep_state(MEMORY, now, {"kept": left.kept, "shares": dict(left.shares), "exact": exact})
