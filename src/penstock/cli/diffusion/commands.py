"""`penstock diffusion`: load diffusion on the paper's simulated cluster. Nothing here imports Spark."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from penstock.cli.lazy_commands import fill

COMMANDS = {"simulate": ("penstock.cli.diffusion.simulate", "simulate")}
_TEXT = "Load-diffused joins: the paper's cluster, simulated."


def diffusion_app(words: Sequence[str] = ()) -> typer.Typer:
    """Build the topic `diffusion` with only the commands that these words need."""
    app = typer.Typer(help=_TEXT, no_args_is_help=True)
    app.callback()(_group)
    return fill(app, COMMANDS, words)


def _group() -> None:
    """Load-diffused joins: the paper's cluster, simulated."""
