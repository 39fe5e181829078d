"""Import a command only when it is called: `penstock lr drive` must not wait for the network parser.

A topic is a Typer app built from a table: command name -> (module, function). Only the module of the command
named on the command line is imported. For help, or for an unknown word, all of them are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

import typer

Table = Mapping[str, tuple[str, str]]


def fill(app: typer.Typer, table: Table, words: Sequence[str]) -> typer.Typer:
    """Register the command that the first word names, or all of them."""
    chosen = [words[0]] if words and words[0] in table else list(table)
    for name in chosen:
        module, function = table[name]
        app.command(name)(getattr(import_module(module), function))
    return app
