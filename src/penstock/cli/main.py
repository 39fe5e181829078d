"""`penstock`: one command line for networks, checkpoints and Linear Road.

Each topic has a module of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from itertools import dropwhile
from typing import Annotated, NoReturn

import typer

from penstock import __version__
from penstock.cli.diffusion.commands import diffusion_app
from penstock.cli.lazy_commands import fill
from penstock.cli.lr.commands import lr_app
from penstock.cli.qos.commands import qos_app
from penstock.cli.refusals import be_verbose
from penstock.cli.standing.commands import standing_app
from penstock.store.durable import UMASK

COMMANDS = {
    "check": ("penstock.cli.network", "check"),
    "explain": ("penstock.cli.network", "explain"),
    "draw": ("penstock.cli.network", "draw"),
    "optimize": ("penstock.cli.optimize", "optimize"),
    "demo": ("penstock.cli.demo", "demo"),
    "run": ("penstock.cli.run", "run"),
    "console": ("penstock.cli.console.look", "console"),
    "attach": ("penstock.cli.console.remote", "attach"),
    "apply": ("penstock.cli.console.remote", "apply"),
    "status": ("penstock.cli.status", "status"),
    "query": ("penstock.cli.query", "query"),
    "dead-letters": ("penstock.cli.dead_letters", "dead_letters"),
}
TOPICS: dict[str, Callable[..., typer.Typer]] = {
    "lr": lr_app,
    "diffusion": diffusion_app,
    "qos": qos_app,
    "standing": standing_app,
}


_HELP = """Write a stream network of boxes and arrows, and run it on Apache Spark.

NET is a network: `file.py:name` (a Network in a Python file) or a YAML file. A first walk:

penstock check NET, then penstock draw NET, then penstock run NET

While it runs, or afterwards, ask its connection points: penstock query CHECKPOINT "SELECT * FROM point"
"""


def penstock_app(words: Sequence[str] = ()) -> typer.Typer:
    """Build the command line with only the commands that these words need."""
    app = typer.Typer(
        name="penstock",
        help=_HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback(help=_HELP)(_main)
    words = list(dropwhile(lambda word: word.startswith("-"), words))  # `--verbose run`: the command is `run`
    if words and words[0] in TOPICS:
        app.add_typer(TOPICS[words[0]](words[1:]), name=words[0])
        return app
    fill(app, COMMANDS, words)
    if not words or words[0] not in COMMANDS:
        for name, topic in TOPICS.items():
            app.add_typer(topic(), name=name)
    return app


def app() -> NoReturn:
    """Run the command `penstock`, and end the process.

    Whatever its processes write is for its owner only, unless PENSTOCK_UMASK says more.
    """
    os.umask(UMASK)
    try:
        penstock_app(sys.argv[1:])()
    except SystemExit as end:
        _leave(end.code if isinstance(end.code, int) else int(end.code is not None))
    _leave(0)


def _leave(code: int) -> NoReturn:
    """End without taking the interpreter apart.

    Python ends its background threads one by one when it exits. Py4J's may be inside C++ code of Arrow at
    that moment, which then aborts the process: a run that had succeeded ended with -6.
    """
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):  # nobody reads any more
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


def _main(
    version: Annotated[  # noqa: ARG001 - its callback prints and leaves
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="Also show Spark's log, and where in the code an error was raised."),
    ] = False,
) -> None:
    if verbose:
        be_verbose()


if __name__ == "__main__":
    app()
