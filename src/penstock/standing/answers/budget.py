"""One budget for all that the engine holds: tuples, matches, current windows, pairs of joins (P32, P38).

Results come first, up to half of the budget. Beyond that, the largest queries no longer keep their results;
they are found at invocation instead. Then the oldest trains of the largest streams leave memory, until
everything fits. They stay in the connection points' files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from penstock.standing.answers.registered_query import RegisteredQuery
from penstock.standing.answers.visible_streams import VisibleStreams

_RESULTS = 2  # results may take one part in this many


def within_budget(
    budget: int | None,
    view: VisibleStreams,
    readers: Mapping[str, Mapping[str, RegisteredQuery]],
    give_up: Callable[[RegisteredQuery], None],
) -> VisibleStreams:
    """Reduce the view to what the budget allows in memory."""
    if budget is None:
        return view
    sizes = {name: prefix.nbytes for name, prefix in view.prefixes.items()}
    # A join of several streams is among the readers of each.
    keepers = list({id(query): query for each in readers.values() for query in each.values()}.values())
    results = sum(query.nbytes for query in keepers)
    if sum(sizes.values()) + results <= budget:
        return view
    for query in sorted(keepers, key=lambda each: -each.nbytes):
        if results <= budget // _RESULTS:
            break
        results -= query.nbytes
        give_up(query)
    most = level(sizes.values(), budget - results)
    lighter = {name: prefix.lighter(most) for name, prefix in view.prefixes.items()}
    for query in keepers:
        query.candidates.clear()  # they come from the longer prefix and would keep it alive
    return VisibleStreams(lighter, view.version)


def level(sizes: Iterable[int], room: float) -> float:
    """The most that each may have so that together they fit; small ones keep what they have.

    >>> level([10, 100, 200], 150)
    70.0
    """
    left = sorted(sizes)
    for done, size in enumerate(left):
        share = room / (len(left) - done)
        if size > share:
            return share
        room -= size
    return float("inf")
