"""`penstock lr`: Linear Road tools for any engine, and Linear Road on Penstock.

Each tool's module holds plain functions; this one only gives them their names. Only `run` imports Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer

from penstock.cli.lazy_commands import fill

COMMANDS = {
    "generate": ("penstock.cli.lr.generate", "generate"),
    "describe": ("penstock.cli.lr.generate", "describe"),
    "history": ("penstock.cli.lr.history", "history"),
    "run": ("penstock.cli.lr.run", "run"),
    "rate": ("penstock.cli.lr.rate", "rate"),
    "drive": ("penstock.cli.lr.drive", "drive"),
    "validate": ("penstock.cli.lr.validate", "validate"),
    "compare": ("penstock.cli.lr.compare", "compare"),
}


def lr_app(words: Sequence[str] = ()) -> typer.Typer:
    """Build the topic `lr` with only the commands that these words need."""
    text = (
        "Linear Road: run and rate it on Penstock; generator, history, driver and validator for any engine."
    )
    app = typer.Typer(help=text, no_args_is_help=True)
    app.callback()(_group)
    return fill(app, COMMANDS, words)


def _group() -> None:
    """Linear Road: run and rate it on Penstock; generator, history, driver and validator for any engine."""


def __getattr__(name: str) -> Any:
    """Build `app`, the whole topic, when somebody asks for it."""
    if name != "app":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return lr_app()


if __name__ == "__main__":
    lr_app(sys.argv[1:])()
