"""Two ratings or runs side by side: what they measured, and how their conditions differ.

Idea: a figure can be compared only together with its conditions. So the table begins with these (machine,
versions, mode) and marks what differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.linear_road.errors import CompareError

KINDS = {"linear-road-rating": "rating", "linear-road-run": "run"}
_TYPES = ("toll notice", "accident alert", "balance", "daily expenditure", "travel time")
_PERCENTILES = ("p50", "p95", "p99", "max")


@dataclass(frozen=True)
class Line:
    """One row of the comparison; `ratio` is b / a where both are numbers."""

    what: str
    a: Any
    b: Any
    ground: bool = False

    @property
    def ratio(self) -> float | None:
        """How many times larger b is than a."""
        if self.ground or not _is_number(self.a) or not _is_number(self.b) or not self.a:
            return None
        return float(self.b / self.a)

    @property
    def differs(self) -> bool:
        """Whether this is a condition in which the two differ."""
        return self.ground and self.a != self.b


def load(file: Path) -> dict[str, Any]:
    """Load a rating.json or run.json."""
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CompareError(f"{file} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise CompareError(f"{file} is not JSON: {error}.") from error
    if not isinstance(result, dict) or kind_of(result) is None:
        raise CompareError(
            f"{file} is neither a rating.json nor a run.json of Linear Road; expected `kind` to be one of "
            f"{', '.join(KINDS)}."
        )
    return result


def kind_of(result: Mapping[str, Any]) -> str | None:
    """`rating`, `run`, or None for anything else."""
    if "rating" in result and "trials" in result:
        return "rating"
    return KINDS.get(str(result.get("kind")))


def best_trial(rating: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The trial that a rating rests on: the last pass at this L, preferably the confirming one."""
    at_rating = [t for t in rating.get("trials", []) if t.get("pass") and t.get("L") == rating.get("rating")]
    confirming = [t for t in at_rating if t.get("confirming")]
    chosen = confirming or at_rating
    return chosen[-1] if chosen else None


def compare(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Line]:
    """The comparison of two ratings or two runs.

    >>> one, two = ({"rating": L, "trials": [], "mode": "peak", "machine": {"cores": 2}} for L in (50, 200))
    >>> [(line.what, line.ratio) for line in compare(one, two) if not line.ground]
    [('rating', 4.0)]
    """
    if kind_of(a) != kind_of(b):
        raise CompareError(
            f"A {kind_of(a)} cannot be compared with a {kind_of(b)}; give two of the same kind."
        )
    lines = [*_ground(a, b), *_figures(a, b)]
    return [line for line in lines if line.a is not None or line.b is not None]


def _ground(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Line]:
    for name in ("date", "started", "mode", "speed", "confirmed", "scored_minutes", "valid"):
        yield Line(name, a.get(name), b.get(name), ground=True)
    for part in ("machine", "versions"):
        first, second = a.get(part, {}), b.get(part, {})
        for name in {**first, **second}:
            yield Line(f"{part}: {name}", first.get(name), second.get(name), ground=True)


def _figures(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Line]:
    yield Line("rating", a.get("rating"), b.get("rating"))
    first, second = (_body(result) for result in (a, b))
    yield Line("tuples", first.get("tuples"), second.get("tuples"))
    for name in ("late", "wrong"):
        yield Line(name, first.get(name), second.get(name))
    for kind, title in enumerate(_TYPES):
        waits = [(body.get("latency") or {}).get(str(kind)) or {} for body in (first, second)]
        for name in _PERCENTILES:
            yield Line(f"{title} {name} s", waits[0].get(name), waits[1].get(name))
    costs = [body.get("cost") or {} for body in (first, second)]
    for name in ("tuples_in_per_s", "tuples_out_per_s", "cores", "memory_mb", "backlog_s"):
        yield Line(name, costs[0].get(name), costs[1].get(name))
    yield Line("cpu_s per million tuples", _per_million(costs[0]), _per_million(costs[1]))


def _body(result: Mapping[str, Any]) -> dict[str, Any]:
    """The part with latencies and costs: a run itself, or the trial that a rating rests on."""
    if kind_of(result) == "run":
        late = [waits.get("late") for waits in result.get("latency", {}).values()]
        figures = {
            "tuples": result.get("input", {}).get("rows"),
            "late": sum(filter(None, late)) if late else None,
        }
        return {**result, **figures}
    return dict(best_trial(result) or {})


def _per_million(cost: Mapping[str, Any]) -> float | None:
    tuples = cost.get("tuples_in_per_s", 0) * cost.get("wall_s", 0)
    return round(cost["cpu_s"] / tuples * 1e6, 3) if tuples and "cpu_s" in cost else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
