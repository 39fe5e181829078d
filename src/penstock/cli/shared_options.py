"""Options that several commands share."""

from __future__ import annotations

import math
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
HeadroomOption = Annotated[
    float | None,
    typer.Option("--headroom", help="With --qos: the part of the capacity to plan with, 0.9 if left out."),
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
