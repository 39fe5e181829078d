"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated

import typer

from penstock.model.errors import PenstockError

TakeOver = Annotated[
    bool,
    typer.Option("--take-over", help="Take over the checkpoint from a process that still uses it."),
]
RecoveryOption = Annotated[
    str,
    typer.Option(
        "--recovery",
        help="Write snapshots of the state in the background instead of a delta with every train. After a "
        "crash of the machine, trains of up to this long run again: '10 seconds'. Only where all input of a "
        "sub-network stays readable. 'off': never.",
    ),
]
IntervalOption = Annotated[
    float,
    typer.Option(
        "--interval",
        help="Seconds of the wall clock between the departures of two trains at least. Few and long trains "
        "cost less processor time where little comes; answers wait that much longer, unless a backlog waits.",
    ),
]
Durability = Annotated[
    str,
    typer.Option(
        help="What the checkpoint survives: the death of any 'process', or a 'power' cut too, which "
        "costs a flush to disk for each record."
    ),
]
QosOption = Annotated[
    bool,
    typer.Option(
        "--qos",
        help="Control by quality of service: trains in the order of what outputs lose by waiting, and "
        "tuples shed under overload where loss graphs allow it. `penstock qos show` and `why` tell.",
    ),
]
IF_LEFT_OUT = "If left out: what `control:` in the network says, else"
HeadroomOption = Annotated[
    float | None,
    typer.Option(
        "--headroom", help=f"Under control: the part of the capacity to plan with. {IF_LEFT_OUT} 0.9."
    ),
]


def parse_rate(text: str) -> tuple[str, float]:
    """The name of a source and its rate, of `--rate SOURCE=TUPLES_PER_SECOND`.

    >>> parse_rate("cars=50_000")
    ('cars', 50000.0)
    """
    name, equals, number = text.partition("=")
    try:
        rate = float(number.replace(",", "").replace("_", ""))
    except ValueError:
        rate = math.nan
    if not equals or not math.isfinite(rate) or rate < 0:
        raise PenstockError(f"--rate {text}: no rate", expected="SOURCE=TUPLES_PER_SECOND, as in cars=50000")
    return name, rate


def one_each(rates: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Rates by source; a source with two of them is refused, as only one can count."""
    given: dict[str, float] = {}
    for name, rate in rates:
        if name in given:
            raise PenstockError(
                f"--rate: source '{name}' has two rates",
                found=f"{given[name]:g} and {rate:g}",
                expected="one rate for each source",
            )
        given[name] = rate
    return given
