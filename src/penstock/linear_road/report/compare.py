"""Two ratings or runs side by side: what they measured, and how their conditions differ.

Idea: a figure can be compared only together with its conditions. So the table begins with these (machine,
versions, mode) and marks what differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.linear_road.errors import CompareError
from penstock.linear_road.report.json_values import JsonObject, is_number, part, parts

KINDS = {"linear-road-rating": "rating", "linear-road-run": "run"}
_TYPES = ("toll notice", "accident alert", "balance", "daily expenditure", "travel time")
_PERCENTILES = ("p50", "p95", "p99", "max")


@dataclass(frozen=True)
class Line:
    """One row of the comparison; `ratio` is b / a where both are numbers."""

    what: str
    a: object
    b: object
    ground: bool = False

    @property
    def ratio(self) -> float | None:
        """How many times larger b is than a."""
        if self.ground or not is_number(self.a) or not is_number(self.b) or not self.a:
            return None
        return float(self.b / self.a)

    @property
    def differs(self) -> bool:
        """Whether this is a condition in which the two differ."""
        return self.ground and self.a != self.b


def load(file: Path) -> JsonObject:
    """Load a rating.json or run.json."""
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CompareError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CompareError(f"{file} is not JSON: {error}") from error
    if not isinstance(result, dict) or kind_of(result) is None:
        raise CompareError(
            f"{file} is neither a rating.json nor a run.json of Linear Road",
            expected=f"`kind` to be one of {', '.join(KINDS)}",
        )
    return result


def kind_of(result: JsonObject) -> str | None:
    """`rating`, `run`, or None for anything else."""
    # Ratings of other systems may have no `kind`, but they have a rating and trials.
    if "rating" in result and "trials" in result:
        return "rating"
    return KINDS.get(str(result.get("kind")))


def best_trial(rating: JsonObject) -> JsonObject | None:
    """The trial that a rating rests on: the last pass at this L, preferably the confirming one."""
    at_rating = [t for t in parts(rating, "trials") if t.get("pass") and t.get("L") == rating.get("rating")]
    confirming = [t for t in at_rating if t.get("confirming")]
    chosen = confirming or at_rating
    return chosen[-1] if chosen else None


def compare(a: JsonObject, b: JsonObject) -> list[Line]:
    """The comparison of two ratings or two runs.

    >>> one, two = ({"rating": L, "trials": [], "mode": "peak", "machine": {"cores": 2}} for L in (50, 200))
    >>> [(line.what, line.ratio) for line in compare(one, two) if not line.ground]
    [('rating', 4.0)]
    """
    if kind_of(a) != kind_of(b):
        raise CompareError(
            f"a {kind_of(a)} cannot be compared with a {kind_of(b)}", hint="give two of the same kind"
        )
    lines = [*_ground(a, b), *_figures(a, b)]
    return [line for line in lines if line.a is not None or line.b is not None]


def _ground(a: JsonObject, b: JsonObject) -> Iterator[Line]:
    for name in ("date", "started", "mode", "speed", "confirmed", "scored_minutes", "valid"):
        yield Line(name, a.get(name), b.get(name), ground=True)
    for title in ("machine", "versions"):
        first, second = part(a, title), part(b, title)
        for name in {**first, **second}:
            yield Line(f"{title}: {name}", first.get(name), second.get(name), ground=True)


def _figures(a: JsonObject, b: JsonObject) -> Iterator[Line]:
    yield Line("rating", a.get("rating"), b.get("rating"))
    first, second = (_body(result) for result in (a, b))
    yield Line("tuples", first.get("tuples"), second.get("tuples"))
    for name in ("late", "wrong"):
        yield Line(name, first.get(name), second.get(name))
    for kind, title in enumerate(_TYPES):
        waits = [part(part(body, "latency"), str(kind)) for body in (first, second)]
        for name in _PERCENTILES:
            yield Line(f"{title} {name} s", waits[0].get(name), waits[1].get(name))
    costs = [part(body, "cost") for body in (first, second)]
    for name in ("tuples_in_per_s", "tuples_out_per_s", "cores", "memory_mb", "backlog_s"):
        yield Line(name, costs[0].get(name), costs[1].get(name))
    yield Line("cpu_s per million tuples", _per_million(costs[0]), _per_million(costs[1]))


def _body(result: JsonObject) -> JsonObject:
    """The part with latencies and costs: a run itself, or the trial that a rating rests on."""
    if kind_of(result) != "run":
        return best_trial(result) or {}
    by_type = part(result, "latency")
    late = [count for kind in by_type if is_number(count := part(by_type, kind).get("late"))]
    return {
        **result,
        "tuples": part(result, "input").get("rows"),
        "late": sum(late) if by_type else None,
    }


def _per_million(cost: JsonObject) -> float | None:
    rate, seconds, cpu = (cost.get(name) for name in ("tuples_in_per_s", "wall_s", "cpu_s"))
    if not is_number(rate) or not is_number(seconds) or not is_number(cpu) or not rate * seconds:
        return None
    return round(cpu / (rate * seconds) * 1e6, 3)
