"""The second part of a query: BEGIN-END for each stream of FROM (P05), and whether a stream can answer it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from penstock.model.durations import format_duration
from penstock.model.errors import did_you_mean
from penstock.standing.errors import QueryError
from penstock.standing.language.query import Part, StreamInfo
from penstock.standing.language.scan import ScannedText, shortened
from penstock.standing.language.windows import Window, window

_BEGIN, _END, _FOR = (re.compile(rf"\b{word}\b", re.IGNORECASE) for word in ("BEGIN", "END", "FOR"))


def window_start(query: ScannedText) -> int:
    """Where the windows begin: at the first BEGIN."""
    first = _BEGIN.search(query.masked)
    return first.start() if first else len(query.masked)


@dataclass(frozen=True)
class _Clause:
    """The texts behind BEGIN, END and FOR; None where the word is missing."""

    begin: str
    end: str | None
    names: str | None


def windows_of(ends: ScannedText, parts: tuple[Part, ...]) -> tuple[Window, ...]:
    """One window for each stream of FROM; `ends` starts with the first BEGIN, if there is one."""
    given: dict[str, Window] = {}
    aliases = [part.alias for part in parts]
    for clause in _clauses(ends):
        for name in _names(clause, aliases):
            if name in given:
                raise QueryError(f"two windows {'for ' + repr(name) if name else 'for all streams'}")
            given[name] = window(clause.begin, clause.end or "")
    return tuple(given.get(alias, given.get("", Window())) for alias in aliases)


def _clauses(ends: ScannedText) -> Iterator[_Clause]:
    starts = [match.start() for match in _BEGIN.finditer(ends.masked)]
    for start, stop in pairwise([*starts, len(ends.masked)]):
        clause = _clause(ends[start:stop])
        if not clause.begin:
            expected = "for example now - 10 minutes"
            raise QueryError("BEGIN does not say when", found="nothing", expected=expected)
        if clause.end == "":
            expected = "now, or now - 10 minutes, or a time"
            raise QueryError("END does not say when", found="nothing", expected=expected)
        yield clause


def _clause(text: ScannedText) -> _Clause:
    end = _END.search(text.masked)
    names = _FOR.search(text.masked, end.end() if end else 0)
    until = names.start() if names else len(text.text)
    return _Clause(
        begin=_bare(text.text[len("BEGIN") : end.start() if end else until]),
        end=_bare(text.text[end.end() : until]) if end else None,
        names=_bare(text.text[names.end() :]) if names else None,
    )


def _bare(text: str) -> str:
    """Without the comma in front of the next BEGIN."""
    return text.strip().rstrip(",").rstrip()


def _names(clause: _Clause, aliases: list[str]) -> list[str]:
    """The streams that a window is for; [""] for all."""
    if clause.names is None:
        return [""]
    names = [name.strip(" `\n\t") for name in clause.names.split(",") if name.strip()]
    if not names:
        raise QueryError("FOR names no stream", expected=f"one or more of: {', '.join(aliases)}")
    unknown = next((name for name in names if name not in aliases), None)
    if unknown is not None:
        raise QueryError(
            f"FOR {shortened(unknown)}: no such stream in FROM",
            hint=did_you_mean(shortened(unknown), aliases),
        )
    return names


def check_window(stream: StreamInfo, asked: Window) -> None:
    """Refuse a window that the stream cannot answer."""
    if not stream.stamped and asked.kind != "count" and asked != Window():
        raise QueryError(
            f"stream '{stream.name}' has no timestamps, so it has no windows of time",
            found=str(asked),
            hint="count tuples instead: BEGIN last 1000 tuples",
        )
    if asked.reach is not None and asked.reach > stream.keep:
        raise QueryError(
            f"the window is longer than stream '{stream.name}' is retained",
            found=str(asked),
            expected=f"at most {format_duration(stream.keep)}",
            hint="shorten the window, or let the connection point keep more",
        )
