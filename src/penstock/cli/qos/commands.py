"""`penstock qos`: quality of service, before and while a network runs."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from penstock.cli.lazy_commands import fill

COMMANDS = {
    "check": ("penstock.cli.qos.check", "check"),
    "show": ("penstock.cli.qos.show", "show"),
    "why": ("penstock.cli.qos.why", "why"),
    "map": ("penstock.cli.qos.map", "map_"),
}
_TEXT = "Quality of service: whether outputs can be good, and whether they are."


def qos_app(words: Sequence[str] = ()) -> typer.Typer:
    """Build the topic `qos` with only the commands that these words need."""
    app = typer.Typer(help=_TEXT, no_args_is_help=True)
    app.callback()(_group)
    return fill(app, COMMANDS, words)


def _group() -> None:
    """Quality of service: whether outputs can be good, and whether they are."""
