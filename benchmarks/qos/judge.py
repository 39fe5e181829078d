"""The one judge of all contenders: utility of each output and second, from what the watcher saw.

Pure functions. For output o and second k, *due* is what the exact network gives for the files that came in
k; *share* is what was delivered of it, and U = loss(share) times the mean delay utility of the delivered.
What was seen after the deadline is lost. Nothing here comes from the runtime.

The answers of a window are due when the file came that closed it. A window that was computed from a part of
its tuples is delivered in part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from penstock.model.qos import QoS

SETTLED = 5.0
"""Seconds after the onset from which on a strict output is to be in time."""
_COMPLETE = 1 - 1e-9


@dataclass(frozen=True)
class Answers:
    """Answers that go back to one input file: `amount` of them, seen at this time."""

    file: int
    amount: float
    seen: float


@dataclass(frozen=True)
class Second:
    """One output in one second of arrival, counted from the start of the driver.

    `worst`: the largest delay of what was delivered, None if nothing was.
    """

    second: int
    due: float
    share: float
    delay_utility: float
    utility: float
    worst: float | None

    def in_zone(self, threshold: float) -> bool:
        """All of it was delivered, and in time."""
        return self.share >= _COMPLETE and self.worst is not None and self.worst <= threshold


def judge(
    arrivals: Sequence[float],
    due: Mapping[int, float],
    answers: Iterable[Answers],
    qos: QoS,
    deadline: float,
) -> list[Second]:
    """The seconds in which something was due to one output.

    `arrivals`: when each file came. `due`: by file, what the exact network gives for it.
    """
    start = arrivals[0]
    second_of = {file: int(arrivals[file] - start) for file in due if file < len(arrivals)}
    expected: dict[int, float] = {}
    for file, second in second_of.items():
        expected[second] = expected.get(second, 0.0) + due[file]
    got: dict[int, list[tuple[float, float]]] = {}
    for each in answers:
        if each.seen <= deadline and each.file in second_of:
            delay = max(0.0, each.seen - arrivals[each.file])
            got.setdefault(second_of[each.file], []).append((delay, each.amount))
    return [_second(k, expected[k], got.get(k, []), qos) for k in sorted(expected) if expected[k] > 0]


def _second(second: int, due: float, delivered: Sequence[tuple[float, float]], qos: QoS) -> Second:
    amount = sum(each for _, each in delivered)
    share = min(1.0, amount / due)
    if amount <= 0:
        return Second(second, due, 0.0, 0.0, 0.0, None)
    in_time = sum(qos.at_delay(delay) * each for delay, each in delivered) / amount
    worst = max(delay for delay, _ in delivered)
    whole = 1.0 if share >= _COMPLETE else share
    return Second(second, due, share, in_time, qos.at_share(whole) * in_time, worst)


def too_many(due: Mapping[int, float], answers: Iterable[Answers]) -> list[int]:
    """The files for which more was delivered than the exact network gives: answers that nobody asked for."""
    got: dict[int, float] = {}
    for each in answers:
        got[each.file] = got.get(each.file, 0.0) + each.amount
    return sorted(file for file, amount in got.items() if amount > due.get(file, 0.0) + 1e-6)


def between(seconds: Iterable[Second], begin: float, end: float) -> list[Second]:
    """Those of input that came in this stretch, in seconds since the start."""
    return [each for each in seconds if begin <= each.second < end]


def mean_utility(seconds: Sequence[Second]) -> float | None:
    """Over the seconds in which something was due; None if there were none."""
    return fmean(each.utility for each in seconds) if seconds else None


def total_utility(utilities: Mapping[str, float | None], qos: Mapping[str, QoS]) -> float:
    """All outputs together, by weight, 0..1. An output of which nothing was due does not count."""
    known = {name: each for name, each in utilities.items() if each is not None}
    weight = sum(qos[name].weight for name in known)
    return sum(qos[name].weight * each for name, each in known.items()) / weight if weight else 0.0


@dataclass(frozen=True)
class StrictFigures:
    """How the strict output fared in an overload from `begin` to `end`.

    `in_time`: share of the seconds, after the first five, in which all that was delivered was in time, and
    something was. `complete`: share of the seconds in which nothing was missing. `last_late`: seconds from
    the onset to the arrival of the last answer that came late; 0 if none did.
    """

    in_time: float | None
    complete: float | None
    last_late: float


def strict_figures(seconds: Sequence[Second], qos: QoS, begin: float, end: float) -> StrictFigures:
    """The figures of an output that is to lose nothing and to be in time."""
    during = between(seconds, begin, end)
    settled = between(during, begin + SETTLED, end)
    on_time = [each.worst is not None and each.worst <= qos.threshold for each in settled]
    late = [each.second + 1 - begin for each in during if each.worst is None or each.worst > qos.threshold]
    return StrictFigures(
        fmean(on_time) if on_time else None,
        fmean(each.share >= _COMPLETE for each in during) if during else None,
        max(late, default=0.0),
    )


def whole_again(by_output: Mapping[str, Sequence[Second]], end: float) -> float | None:
    """Seconds from the end of the overload to the input from which on nothing is missing any more.

    None if something is missing to the last second. Windows that began during the overload may close long
    after it, so give only outputs without windows.
    """
    worst = 0.0
    for seconds in by_output.values():
        after = [each for each in seconds if each.second >= end]
        missing = [each.second for each in after if each.share < _COMPLETE]
        if missing and missing[-1] == after[-1].second:
            return None
        worst = max([worst, *(second + 1 - end for second in missing)])
    return worst


def turns(series: Iterable[float], least: float = 0.05) -> int:
    """How often a series changes its direction by more than this.

    >>> turns([1.0, 0.4, 0.42, 0.4, 0.9]), turns([0.5, 0.52, 0.5, 0.52]), turns([1.0, 0.5, 0.7, 0.4])
    (1, 0, 2)
    """
    count, way = 0, 0
    low = high = None
    for value in series:
        low = value if low is None else min(low, value)
        high = value if high is None else max(high, value)
        if way <= 0 and value - low > least:
            count, way, high = count + (way != 0), 1, value
        elif way >= 0 and high - value > least:
            count, way, low = count + (way != 0), -1, value
    return count


def slope_per_minute(points: Sequence[tuple[float, float]]) -> float | None:
    """Growth of a figure in a minute, by least squares over (seconds, figure); None from fewer than three.

    >>> slope_per_minute([(0, 10.0), (30, 11.0), (60, 12.0)])
    2.0
    """
    if len(points) < 3:
        return None
    middle, level = fmean(t for t, _ in points), fmean(y for _, y in points)
    spread = sum((t - middle) ** 2 for t, _ in points)
    return 60 * sum((t - middle) * (y - level) for t, y in points) / spread if spread else None
