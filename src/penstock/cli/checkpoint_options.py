"""Options about a checkpoint that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

TakeOver = Annotated[
    bool,
    typer.Option("--take-over", help="Take over the checkpoint from a process that still uses it."),
]
Durability = Annotated[
    str,
    typer.Option(
        help="What the checkpoint survives: the death of any 'process', or a 'power' cut too, which "
        "costs a flush to disk for each record."
    ),
]
