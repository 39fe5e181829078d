"""What is visible of all streams at one moment: the newest event time, and the ends of a query's windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.standing.answers.registered_query import RegisteredQuery
from penstock.standing.errors import NotRetainedError
from penstock.standing.language.query import StandingQuery
from penstock.standing.language.windows import At, Last, Window
from penstock.standing.stems.data_stem import NEVER, StreamPrefix


@dataclass(frozen=True, eq=False)
class VisibleStreams:
    """The prefixes of all streams; each train that becomes visible makes a new version."""

    prefixes: Mapping[str, StreamPrefix]
    version: int = 0
    moment: int | None = None  # an earlier `now` that a client has asked for

    def with_prefix(self, stream: str, prefix: StreamPrefix) -> VisibleStreams:
        """The next version, in which one stream has moved."""
        return VisibleStreams({**self.prefixes, stream: prefix}, self.version + 1)

    def now(self, query: StandingQuery) -> int:
        """The latest visible event time of the query's streams."""
        if self.moment is not None:
            return self.moment
        return max(self.prefixes[name].newest for name in query.streams)

    def begin(self, query: StandingQuery, part: int, now: int) -> int:
        """The begin of the window on one stream; for a count window, the time of its oldest tuple."""
        window, prefix = query.windows[part], self.prefixes[query.parts[part].stream]
        if isinstance(window.begin, Last):
            ranges = prefix.within(window, now)
            return min((int(r.block.stamps[r.low]) for r in ranges), default=NEVER)
        return max(window.span(now)[0], prefix.lost)

    def spans(self, query: StandingQuery, now: int) -> list[tuple[int, int]]:
        """The windows of all streams, without times of which some tuples are gone."""
        ends = (window.span(now)[1] for window in query.windows)
        return [(self.begin(query, i, now), end) for i, end in enumerate(ends)]

    def begins(self, registered: RegisteredQuery) -> list[int]:
        """The time from which tuples of each stream may still join."""
        query = registered.query
        now, begins = self.now(query), []
        for i, part in enumerate(query.parts):
            prefix = self.prefixes[part.stream]
            oldest = prefix.lost if prefix.evicted is None else prefix.evicted.newest + 1
            begins.append(max(oldest, self.begin(query, i, now) if registered.mode == "C" else NEVER))
        return begins


def check_retained(stream: str, prefix: StreamPrefix, window: Window, now: int) -> None:
    """Refuse a window that reaches back to tuples that retention has deleted."""
    if isinstance(window.begin, Last):
        _check_count(stream, prefix, window, window.begin.tuples, now)
        return
    begin, lost = window.span(now)[0], prefix.lost
    if window.begin is not None and lost > NEVER and begin < lost:
        raise NotRetainedError(
            f"stream '{stream}': the window is longer than what is retained",
            found=f"{window}, that is from {At(begin)} on",
            expected=f"a BEGIN at or after {At(lost)}",
            hint="older tuples have been deleted: let the connection point keep more",
        )


def _check_count(stream: str, prefix: StreamPrefix, window: Window, tuples: int, now: int) -> None:
    """The same check for a count window.

    How many tuples in the files lie before END is unknown here. All are counted, until an answer has read
    them.
    """
    if prefix.oldest >= prefix.lost:
        return  # nothing is gone
    retained = prefix.held(prefix.lost, window.span(now)[1])
    retained += prefix.evicted.rows if prefix.evicted else 0
    if retained < tuples:
        raise NotRetainedError(
            f"stream '{stream}': the window is longer than what is retained",
            found=str(window),
            expected=f"at most {retained} tuples now",
        )
