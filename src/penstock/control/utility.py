"""How good an output was in a second: loss(share) times the mean utility of its delays (A55-A58, A83).

An output that gets nothing gives no samples, and would look perfect. So its delay is the larger of what was
measured and the age of what waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.model.qos import QoS
from penstock.store.catalog.record_types import OutputSecond


def utility(qos: QoS, second: OutputSecond) -> float | None:
    """The utility of an output in one second; None if nothing was due.

    >>> qos = QoS(delay=[(0, 1), (2, 1), (12, 0)], loss=[(0, 0), (100, 1)])
    >>> utility(qos, OutputSecond("out", 7, ((1.0, 30), (7.0, 10))))
    0.875
    >>> utility(qos, OutputSecond("out", 7, age=7.0))
    0.5
    >>> utility(qos, OutputSecond("out", 7, ((1.0, 30),), age=7.0))
    0.5
    >>> utility(qos, OutputSecond("out", 7, ((1.0, 30),), share=0.25))
    0.25
    >>> utility(qos, OutputSecond("out", 7)) is None
    True
    """
    if not second.due:
        return None
    return qos.at_share(second.share) * _delay_utility(qos, second)


def _delay_utility(qos: QoS, second: OutputSecond) -> float:
    age = second.age or 0.0
    if not second.tuples:
        return qos.at_delay(age)
    summed = sum(qos.at_delay(max(delay, age)) * tuples for delay, tuples in second.delays)
    return summed / second.tuples


def mean_utility(qos: QoS, seconds: Iterable[OutputSecond]) -> float | None:
    """The mean over the seconds in which something was due; None if there was none."""
    known = [value for value in (utility(qos, second) for second in seconds) if value is not None]
    return sum(known) / len(known) if known else None


def in_good_zone(qos: QoS, second: OutputSecond) -> bool | None:
    """Whether all delays were within the threshold; None if nothing was due (A83)."""
    if not second.due:
        return None
    worst = max((delay for delay, tuples in second.delays if tuples), default=0.0)
    return max(worst, second.age or 0.0) <= qos.threshold


def delay_at(seconds: Sequence[OutputSecond], rank: float) -> float | None:
    """The delay of the tuple at this rank, 0..1, by nearest rank over all tuples of the seconds.

    >>> delay_at([OutputSecond("out", 1, ((1.0, 90), (5.0, 10)))], 0.5)
    1.0
    """
    ordered = sorted(pair for second in seconds for pair in second.delays if pair[1])
    needed = rank * sum(tuples for _, tuples in ordered)
    for delay, tuples in ordered:
        needed -= tuples
        if needed <= 1e-9:
            return delay
    return None
