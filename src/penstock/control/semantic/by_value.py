"""What the plan has to know of an output whose tuples can be dropped by value."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.control.semantic.bins import ValueCurve


@dataclass(frozen=True)
class ByValue:
    """How an output can be shed by value: what remains of its value, by the share of tuples kept.

    `at_input`: the valve stands at an input, behind decoding.
    """

    curve: ValueCurve
    at_input: bool
