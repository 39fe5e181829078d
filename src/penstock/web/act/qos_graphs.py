"""QoS graphs of a running output (A40): judged against what was measured before they are set."""

from __future__ import annotations

from dataclasses import fields

from penstock.control.utility import mean_utility, utility
from penstock.model.errors import ExpressionError, NetworkError
from penstock.model.json_types import JsonObject
from penstock.model.qos import QoS
from penstock.store.catalog.catalog import Catalog
from penstock.web.errors import RefusedChangeError

_KEYS = tuple(field.name for field in fields(QoS))
_SAME = 1e-9


def qos_of(given: JsonObject) -> QoS:
    """The QoS of a JSON body; refused if its graphs cannot be.

    >>> qos_of({"delay": [[0, 1], [5, 1], [30, 0]]}).threshold
    5.0
    """
    odd = sorted(set(given) - {*_KEYS, "threshold"})
    if odd or "delay" not in given:
        fault = f"unknown: {', '.join(odd)}" if odd else "no delay graph"
        raise RefusedChangeError("this is no QoS", found=fault, expected=", ".join(_KEYS))
    try:
        return QoS(**{key: given[key] for key in _KEYS if given.get(key) is not None})
    except (ExpressionError, NetworkError) as error:
        raise RefusedChangeError(
            error.problem, found=error.found, expected=error.expected, hint=error.hint
        ) from None


def judged(catalog: Catalog, output: str, now: QoS | None, then: QoS, seconds: int) -> JsonObject:
    """How another QoS would have judged each of the last seconds of an output."""
    known = catalog.output_seconds(seconds).get(output, [])
    pairs = [
        (each.second, None if now is None else utility(now, each), utility(then, each)) for each in known
    ]
    otherwise = [s for s, old, new in pairs if old is None or new is None or abs(old - new) > _SAME]
    return {
        "output": output,
        "seconds": [list(pair) for pair in pairs],
        "otherwise": len(otherwise),
        "mean_now": None if now is None else mean_utility(now, known),
        "mean_then": mean_utility(then, known),
    }
