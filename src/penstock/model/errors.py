"""Errors are part of the interface: what is wrong, where it was written, found, expected, a hint."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FrameType

_PACKAGE = str(Path(__file__).resolve().parent.parent)
_STANDARD = str(Path(difflib.__file__).resolve().parent)
_DATACLASSES = replace.__code__.co_filename


@dataclass(frozen=True)
class Where:
    """The line of the user's text (Python or YAML) that wrote a box."""

    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "<unknown>"


def caller() -> Where:
    """The nearest stack frame outside of this package: the user's own line."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE):
            return Where(file, frame.f_lineno)
        if frame.f_back is None:
            break
        frame = frame.f_back
    return Where()


def raised_at(error: BaseException) -> Where:
    """The last line of the user's own code that an error came through; unknown if it came through none."""
    where, trace = Where(), error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if _is_users(file):
            where = Where(file, trace.tb_lineno)
        trace = trace.tb_next
    return where


def _is_users(file: str) -> bool:
    """Not ours, not Python's, not an installed package's."""
    return not file.startswith((_PACKAGE, _STANDARD, "<")) and "site-packages" not in file


def one_line(text: object, length: int = 300) -> str:
    r"""A foreign text as one line of a message, cut if it is too long.

    >>> one_line("cannot cope\n  with seven")
    'cannot cope with seven'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= length else f"{line[: length - 3]}..."


def directly() -> Where | None:
    """The line that called the caller's caller, if that is the user's own code.

    What a dataclass puts in between is nobody's line: the `__init__` that it was given, and `replace`.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _is_of_a_dataclass(frame.f_code):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename.startswith(_PACKAGE):
        return None
    return Where(frame.f_code.co_filename, frame.f_lineno)


def _is_of_a_dataclass(code: CodeType) -> bool:
    made = (code.co_filename, code.co_name) == ("<string>", "__init__")
    return made or code.co_filename == _DATACLASSES


def refusal_text(problem: str, found: str = "", expected: str = "", hint: str = "") -> str:
    """The form of every refusal: one line says it all; then found, expected and hint, where there are any.

    >>> print(refusal_text("no stream 'report'", hint="did you mean 'reports'?"))
    no stream 'report'
      hint:     did you mean 'reports'?
    """
    lines = [problem]
    for label, text in (("found", found), ("expected", expected), ("hint", hint)):
        if text:
            lines.append(f"  {label + ':':<10}{text}")
    return "\n".join(lines)


class PenstockError(Exception):
    """Everything that Penstock itself raises on purpose; its parts are data, so that a page can show them.

    >>> print(PenstockError("the speed is 0", expected="a factor above 0"))
    the speed is 0
      expected: a factor above 0
    """

    def __init__(self, problem: str, *, found: str = "", expected: str = "", hint: str = "") -> None:
        self.problem, self.found, self.expected, self.hint = problem, found, expected, hint
        super().__init__(self.message())

    def message(self) -> str:
        """The full text."""
        return refusal_text(self.problem, self.found, self.expected, self.hint)

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross from tasks and worker processes, so they must survive pickling with their parts."""
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[PenstockError], args: tuple[str, ...], parts: dict[str, object]) -> PenstockError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(parts)
    return error


class MissingPackageError(PenstockError, ImportError):
    """Something that is installed apart is not there; the message says what to install."""


class NetworkError(PenstockError):
    """A network that cannot be built: also which box is wrong, and where it was written."""

    def __init__(
        self,
        problem: str,
        *,
        box: str = "",
        where: Where | None = None,
        found: str = "",
        expected: str = "",
        hint: str = "",
    ) -> None:
        self.box, self.where = box, where or Where()
        super().__init__(problem, found=found, expected=expected, hint=hint)

    def message(self) -> str:
        """The full text: place and box first, then the problem and its parts."""
        head = f"{self.where}: " if self.where.file else ""
        head += f"box '{self.box}': " if self.box else ""
        return refusal_text(head + self.problem, self.found, self.expected, self.hint)


class ExpressionError(PenstockError):
    """An expression that does not parse or type; `error_location` makes it a NetworkError with a line."""

    def message(self) -> str:
        """The problem alone: the NetworkError that follows shows the other parts."""
        return self.problem


def on_line(error: ExpressionError, where: Where | None) -> PenstockError:
    """The same error with the user's line; itself if that is not known: whoever reads a text adds it."""
    if where is None:
        return error
    return NetworkError(
        error.problem, where=where, found=error.found, expected=error.expected, hint=error.hint
    )


def shown(value: object) -> str:
    """A value that should have been another, short enough for a line.

    >>> shown(5), shown("out/")
    ('5 (int)', "'out/' (str)")
    """
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, else lists what there is.

    >>> did_you_mean("spede", ["speed", "vid"])
    "did you mean 'speed'?"
    >>> did_you_mean("zzz", ["speed", "vid"])
    'there are: speed, vid'
    """
    names = sorted(set(known))
    # difflib sees case as a difference; a user who writes 'VID' means 'vid'.
    folded = {name.lower(): name for name in names}
    near = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{folded[near[0]]}'?"
    return f"there are: {', '.join(names)}" if names else ""
