"""`penstock`: one command line for networks, checkpoints and Linear Road. Each topic has a module of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock import __version__
from penstock.cli import lr
from penstock.cli.network import check, draw, explain
from penstock.cli.query import dead_letters, query
from penstock.cli.run import run

app = typer.Typer(
    name="penstock",
    help="Stream networks of boxes on Apache Spark. NET is `file.py:name` (a Network in a Python file) or a YAML file.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("check")(check)
app.command("explain")(explain)
app.command("draw")(draw)
app.command("run")(run)
app.command("query")(query)
app.command("dead-letters")(dead_letters)
app.add_typer(lr.app, name="lr")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")] = False,
) -> None:
    """Stream networks of boxes on Apache Spark."""


if __name__ == "__main__":
    app()
