"""How a run is to be controlled: the frozen settings that a network may carry (`control:` in YAML)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Literal, get_args

from penstock.model.errors import ExpressionError, did_you_mean, directly, on_line, shown

Scheme = Literal["state", "feedback", "round-robin", "fifo"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)


@dataclass(frozen=True)
class ControlSettings:
    """`headroom`: the part of the capacity to plan with; the rest is for queries without QoS (A62).

    `priority`: how the next train is chosen. `shed`: tuples may be dropped under overload. `optimize`:
    rewrite sub-networks while they run. `observe`: decide and log, but apply nothing.
    """

    headroom: float = 0.9
    priority: Scheme = "state"
    shed: bool = True
    optimize: bool = False
    observe: bool = False

    def __post_init__(self) -> None:
        try:
            self._check()
        except ExpressionError as error:
            # As with a QoS: the user's own line is known here, that of a YAML text to its reader.
            raise on_line(error, directly()) from None

    def _check(self) -> None:
        number = isinstance(self.headroom, Real) and not isinstance(self.headroom, bool)
        if not number or not math.isfinite(self.headroom) or not 0 < self.headroom <= 1:
            found = f"{self.headroom:g}" if number else shown(self.headroom)
            raise ExpressionError("the headroom is out of range", found=found, expected="above 0, up to 1")
        if self.priority not in SCHEMES:
            raise ExpressionError(
                f"no priority '{self.priority}'",
                expected=f"one of: {', '.join(SCHEMES)}",
                hint=did_you_mean(str(self.priority), SCHEMES),
            )
        for name in ("shed", "optimize", "observe"):
            if not isinstance(getattr(self, name), bool):
                raise ExpressionError(
                    f"{name} is neither true nor false",
                    found=shown(getattr(self, name)),
                    expected="True or False",
                )
