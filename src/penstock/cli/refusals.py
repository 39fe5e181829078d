"""How a command refuses: the error as text on standard error, an exit code, and no traceback.

Every command runs under `refusals()`, so all errors read alike: what is wrong, what was found, what was
expected, a hint. `penstock --verbose` adds the traceback and Spark's log.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer

from penstock.cli.printable import printable, printable_line
from penstock.model.errors import ExpressionError, PenstockError, one_line, refusal_text

FAILED, BAD_INPUT, NOT_VALID, STOPPED = 1, 2, 3, 130
"""Exit codes: failed on the way; options, files or networks that cannot be used.

Done but not valid; stopped.
"""

_FULL = (errno.ENOSPC, errno.EDQUOT)

VERBOSE = "PENSTOCK_VERBOSE"
"""An environment variable, so that processes which a command starts are as verbose as the command."""


def be_verbose() -> None:
    """From now on show tracebacks, Spark's log and our own, also in processes that we start."""
    os.environ[VERBOSE] = "1"
    logging.basicConfig(level=logging.INFO)


def is_verbose() -> bool:
    """Whether the user asked for verbose output."""
    return os.environ.get(VERBOSE) == "1"


@contextmanager
def refusals(
    codes: Mapping[type[PenstockError], int] | None = None, *, files: Path | str | None = None
) -> Iterator[None]:
    """Turn Penstock's own errors, and files that cannot be used, into a refusal.

    `codes`: exit codes by kind of error; the first kind that fits counts, and all others get 2. `files`: what
    the command writes. Systems and libraries often do not name the file of a failed write.
    """
    try:
        yield
    except PenstockError as error:
        refuse(_whole(error), _exit_code(error, codes or {}))
    except OSError as error:
        # Without a file name the error is not about the user's files: a broken pipe, a full socket.
        file = error.filename or files
        if isinstance(error, BrokenPipeError):
            raise
        if file is None and error.errno not in _FULL:
            refuse(_unexpected(error), FAILED)
        hint = "make room; the same command goes on" if error.errno in _FULL else ""
        code = FAILED if error.errno in _FULL else BAD_INPUT
        refuse(
            refusal_text(f"{printable_line(str(file or 'the disk'))}: {error.strerror or error}", hint=hint),
            code,
        )
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except sqlite3.DatabaseError as error:
        hint = "move it away; a catalog is made anew, registered queries are lost"
        refuse(refusal_text("a database of the checkpoint cannot be used", found=str(error), hint=hint))
    except Exception as error:
        refuse(_unexpected(error), FAILED)


def _whole(error: PenstockError) -> str:
    """All its parts. An ExpressionError shows them only where a box adds its line, and an option has none."""
    if isinstance(error, ExpressionError):
        return refusal_text(error.problem, error.found, error.expected, error.hint)
    return str(error)


def _unexpected(error: Exception) -> str:
    """A fault of our own, or of the user's code where nobody expects it: said in one message too."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return refusal_text(
        f"{type(error).__name__}: {one_line(error) or 'no more is known'}",
        found=f"at {last.filename}:{last.lineno}",
        hint="this should not happen; --verbose shows the whole trace, please report it",
    )


def _exit_code(error: PenstockError, codes: Mapping[type[PenstockError], int]) -> int:
    return next((code for kind, code in codes.items() if isinstance(error, kind)), BAD_INPUT)


def refuse(problem: str, code: int = BAD_INPUT) -> NoReturn:
    """Say what is wrong on standard error and exit.

    In verbose mode, the traceback comes first.
    """
    if is_verbose() and sys.exc_info()[0] is not None:
        traceback.print_exc()
    typer.secho(printable(problem), err=True, fg=typer.colors.RED if sys.stderr.isatty() else None)
    raise typer.Exit(code) from None
