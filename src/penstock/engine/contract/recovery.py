"""How a sub-network's state survives: a delta with every train, or snapshots and trains that run again.

To run a train again, its input must still be readable. Connection points are ours, and so is when they delete
something. A source says whether its input stays (`Source.stays`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.model.boxes import Source, Trait
from penstock.model.durations import format_duration, parse_duration
from penstock.model.errors import ExpressionError, PenstockError
from penstock.rewrite.subnetworks import SubNetwork
from penstock.store.durable import Durability

OFF = "off"
_NO_STATE = "it has no state"


@dataclass(frozen=True)
class StatePlan:
    """Whether a sub-network keeps its state by snapshots, and why or why not."""

    snapshots: bool
    why: str


def parse_recovery(text: str | float | None) -> float | None:
    """The recovery target in seconds; None: each train writes its state.

    >>> parse_recovery("10 seconds"), parse_recovery("off")
    (10.0, None)
    """
    if text is None or text == OFF:
        return None
    try:
        seconds = parse_duration(text) / 1e6
    except ExpressionError as error:
        raise PenstockError(
            f"recovery '{text}' is no length of time", expected="for example '10 seconds', or 'off'"
        ) from error
    if seconds <= 0:
        raise PenstockError(f"recovery '{text}' is not above 0", expected="'10 seconds', or 'off'")
    return seconds


def state_plan(sub: SubNetwork, durability: Durability, *, local: bool = True) -> StatePlan:
    """How the state of a sub-network may be kept; `local`: all workers run on this host."""
    if not any(Trait.STATEFUL in node.traits for node in sub.network.nodes.values()):
        return StatePlan(False, _NO_STATE)
    if durability == "power" and not local:
        # Nobody could tell which files of a cluster's workers are whole.
        return StatePlan(False, "after a power cut, files that a cluster's workers wrote may be torn")
    gone = [name for name in sub.inputs if not _stays(sub, name, durability)]
    if gone:
        names = ", ".join(f"'{name}'" for name in gone)
        return StatePlan(False, f"the input of {names} may be gone later (stays=True says that it is not)")
    return StatePlan(True, "every input stays readable")


def _stays(sub: SubNetwork, name: str, durability: Durability) -> bool:
    node = sub.network.nodes[name]
    if not isinstance(node, Source):
        return True  # a connection point
    if node.stays is not None:
        return node.stays
    # A power cut may take files that their writer has not flushed, though a train has read them.
    return node.format.stays and durability == "process"


def state_text(sub: SubNetwork, durability: Durability, seconds: float | None, *, local: bool = True) -> str:
    """One line for `explain`: how a run keeps the state."""
    plan = state_plan(sub, durability, local=local)
    if plan.snapshots and seconds is not None:
        target = format_duration(round(seconds * 1e6))
        return f"state: snapshots in the background, rebuilt within {target} of trains; {plan.why}"
    if plan.snapshots:
        return "state: a delta with every train; recovery= (--recovery) would write snapshots instead"
    return f"state: {'none' if plan.why == _NO_STATE else f'a delta with every train; {plan.why}'}"


def state_texts(
    subs: Iterable[SubNetwork], durability: Durability, seconds: float | None, *, local: bool
) -> str:
    """The same for all sub-networks."""
    return "\n".join(f"'{sub.name}': {state_text(sub, durability, seconds, local=local)}" for sub in subs)
