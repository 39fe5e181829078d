"""Commands that are imported when they are called: `penstock lr drive` must not wait for the parser of
networks.

A topic is a Typer made of a table: command name -> (module, function). Given the words of the command line,
only the module of the command that they name is imported; for help, or for a word that is none, all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

import typer

Table = Mapping[str, tuple[str, str]]


def fill(app: typer.Typer, table: Table, words: Sequence[str]) -> typer.Typer:
    """Register the command that the first word names, or all."""
    chosen = [words[0]] if words and words[0] in table else list(table)
    for name in chosen:
        module, function = table[name]
        app.command(name)(getattr(import_module(module), function))
    return app
