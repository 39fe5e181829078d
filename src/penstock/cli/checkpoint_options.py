"""Options about a checkpoint that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

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
