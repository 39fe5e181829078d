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

    What still waits counts, too: a tuple is as late as the oldest that waits in its second, and a second in
    which something waited and nothing came counts like a mean one, with that age.

    >>> delay_at([OutputSecond("out", 1, ((1.0, 90), (5.0, 10)))], 0.5)
    1.0
    >>> delay_at([OutputSecond("out", 1, ((1.0, 90), (5.0, 10)), age=4.0)], 0.5)
    4.0
    >>> delay_at([OutputSecond("out", 1, ((1.0, 90),)), OutputSecond("out", 2, age=2.0)], 0.99)
    2.0
    """
    came = [
        (max(delay, second.age or 0.0), tuples)
        for second in seconds
        for delay, tuples in second.delays
        if tuples
    ]
    starved = [second.age for second in seconds if second.age is not None and not second.tuples]
    each = sum(tuples for _, tuples in came) / max(1, sum(1 for second in seconds if second.tuples)) or 1
    # Young tuples that wait between two answers must not make the answers look faster.
    known = (_at_rank(came, rank), _at_rank([*came, *((age, each) for age in starved)], rank))
    return max((delay for delay in known if delay is not None), default=None)


def _at_rank(samples: Sequence[tuple[float, float]], rank: float) -> float | None:
    needed = rank * sum(weight for _, weight in samples)
    for delay, weight in sorted(samples):
        needed -= weight
        if needed <= 1e-9:
            return delay
    return None
