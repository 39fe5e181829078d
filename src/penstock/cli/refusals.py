"""How a command refuses: the error as text on standard error, an exit code, and no traceback.

Every command runs under `refusals()`, so people see one dialect: what is wrong, what was found, what was expected, a hint.
`penstock --verbose` adds the traceback, and lets Spark log what it otherwise keeps to itself.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from penstock.model.errors import PenstockError

BAD_INPUT = 2
"""The exit code for options, files and networks that cannot be used."""

VERBOSE = "PENSTOCK_VERBOSE"
"""An environment variable, so that processes which a command starts are as verbose as the command."""


def be_verbose() -> None:
    """Show tracebacks, Spark's log and our own from now on, also in processes that we start."""
    os.environ[VERBOSE] = "1"
    logging.basicConfig(level=logging.INFO)


def is_verbose() -> bool:
    """Whether somebody asked to see more than the answer."""
    return os.environ.get(VERBOSE) == "1"


@contextmanager
def refusals(code: int = BAD_INPUT) -> Iterator[None]:
    """Turn what Penstock raises on purpose, and files that cannot be used, into a refusal."""
    try:
        yield
    except PenstockError as error:
        refuse(str(error), code)
    except OSError as error:
        # Without a file name it is not about the user's files: a broken pipe, a full socket.
        if error.filename is None:
            raise
        refuse(f"{error.filename}: {error.strerror or error}", code)


def refuse(problem: str, code: int = BAD_INPUT) -> NoReturn:
    """Say what is wrong on standard error and leave with an exit code; verbose, with the traceback above it."""
    if is_verbose() and sys.exc_info()[0] is not None:
        traceback.print_exc()
    typer.secho(problem, err=True, fg=typer.colors.RED if sys.stderr.isatty() else None)
    raise typer.Exit(code) from None
