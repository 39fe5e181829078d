"""The second part of a query: BEGIN-END for each stream of FROM (P05), and whether a stream can answer it."""

from __future__ import annotations

import re

from penstock.model.durations import format_duration
from penstock.model.errors import did_you_mean
from penstock.standing.errors import QueryError
from penstock.standing.language.query import Part, StreamInfo
from penstock.standing.language.windows import Window, window

QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", re.DOTALL)
_CLAUSE = re.compile(
    r"BEGIN\b(?P<begin>.*?)(?:\bEND\b(?P<end>.*?))?(?:\bFOR\b(?P<names>.*?))?(?=,?\s*BEGIN\b|$)",
    re.IGNORECASE | re.DOTALL,
)


def without_quoted(text: str) -> str:
    """The text at the same length, with quoted parts blanked: they may look like our keywords."""
    return QUOTED.sub(lambda match: "x" * len(match[0]), text)


def windows_of(text: str, parts: tuple[Part, ...]) -> tuple[Window, ...]:
    """One window for each stream of FROM."""
    given: dict[str, Window] = {}
    aliases = [part.alias for part in parts]
    masked = without_quoted(text)
    at = 0
    for match in _CLAUSE.finditer(masked):
        if masked[at : match.start()].strip(" ,\n\t"):
            raise QueryError("the windows do not parse", found=text[at : match.start()].strip())
        cut = {
            name: text[slice(*match.span(name))] if match[name] else "" for name in ("begin", "end", "names")
        }
        if match["end"] is not None and not match["end"].strip():
            raise QueryError(
                "END does not say when", found="nothing", expected="now, or now - 10 minutes, or a time"
            )
        if not cut["begin"].strip():
            raise QueryError(
                "BEGIN does not say when", found="nothing", expected="for example now - 10 minutes"
            )
        names = [name.strip(" `\n\t") for name in cut["names"].split(",") if name.strip()] or [""]
        if match["names"] is not None and names == [""]:
            raise QueryError("FOR names no stream", expected=f"one or more of: {', '.join(aliases)}")
        for name in names:
            if name and name not in aliases:
                raise QueryError(f"FOR {name}: no such stream in FROM", hint=did_you_mean(name, aliases))
            if name in given:
                raise QueryError(f"two windows {'for ' + repr(name) if name else 'for all streams'}")
            given[name] = window(cut["begin"].strip().rstrip(","), cut["end"].strip().rstrip(","))
        at = match.end()
    return tuple(given.get(alias, given.get("", Window())) for alias in aliases)


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
