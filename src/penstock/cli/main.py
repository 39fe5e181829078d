"""`penstock`: one command line for networks, checkpoints and Linear Road. Each topic has a module of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from penstock import __version__
from penstock.cli.diffusion.commands import diffusion_app
from penstock.cli.lazy_commands import fill
from penstock.cli.lr.commands import lr_app
from penstock.cli.standing.commands import standing_app

COMMANDS = {
    "check": ("penstock.cli.network", "check"),
    "explain": ("penstock.cli.network", "explain"),
    "draw": ("penstock.cli.network", "draw"),
    "run": ("penstock.cli.run", "run"),
    "query": ("penstock.cli.query", "query"),
    "dead-letters": ("penstock.cli.query", "dead_letters"),
}
TOPICS: dict[str, Callable[..., typer.Typer]] = {
    "lr": lr_app,
    "diffusion": diffusion_app,
    "standing": standing_app,
}


def penstock_app(words: Sequence[str] = ()) -> typer.Typer:
    """The command line, with the commands that these words need."""
    app = typer.Typer(
        name="penstock",
        help="Stream networks of boxes on Apache Spark. NET is `file.py:name` (a Network in a Python file) or a YAML file.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_main)
    if words and words[0] in TOPICS:
        app.add_typer(TOPICS[words[0]](words[1:]), name=words[0])
        return app
    fill(app, COMMANDS, words)
    if not words or words[0] not in COMMANDS:
        for name, topic in TOPICS.items():
            app.add_typer(topic(), name=name)
    return app


def app() -> None:
    """What the command `penstock` runs."""
    penstock_app(sys.argv[1:])()


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Stream networks of boxes on Apache Spark. NET is `file.py:name` (a Network in a Python file) or a YAML file."""


if __name__ == "__main__":
    app()
