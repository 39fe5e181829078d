"""The text of a query before it is parsed: comments removed, quoted parts known.

A client may send any text, so this is one pass from left to right that never goes back. A regular expression
over the whole text would look at the rest once for every quote that is not closed: 48 kB took 19 seconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.standing.errors import QueryError

_OPENING = re.compile(r"['\"`]|--|/\*(?!\+)")  # /*+ is a hint, which the parser refuses by name
_IN_QUOTES = {quote: re.compile(rf"[\\{quote}]") for quote in "'\""}
_SHOWN = 60


@dataclass(frozen=True)
class ScannedText:
    r"""A query without comments, and the same text with quoted parts blanked: these may hold our keywords.

    >>> scan("SELECT a -- why\nFROM s WHERE b = 'BEGIN'").masked
    'SELECT a  \nFROM s WHERE b = xxxxxxx'
    """

    text: str
    masked: str

    def __getitem__(self, part: slice) -> ScannedText:
        return ScannedText(self.text[part], self.masked[part])


def scan(text: str) -> ScannedText:
    """Read the text once, and refuse a quote or comment that is never closed."""
    texts, masks, at = [], [], 0
    while (opening := _OPENING.search(text, at)) is not None:
        start, end = opening.start(), _end(text, opening[0], opening.start())
        plain = text[at:start]
        quoted = opening[0] in "'\"`"
        texts += [plain, text[start:end] if quoted else " "]
        masks += [plain, "x" * (end - start) if quoted else " "]
        at = end
    return ScannedText("".join([*texts, text[at:]]), "".join([*masks, text[at:]]))


def _end(text: str, opening: str, start: int) -> int:
    """Where a quoted part or a comment ends."""
    match opening:
        case "--":
            line = text.find("\n", start)
            return len(text) if line < 0 else line
        case "/*":
            close = text.find("*/", start + 2)
            end = close + 2 if close >= 0 else -1
        case "`":
            end = text.find("`", start + 1) + 1 or -1
        case _:
            end = _quote_end(text, opening, start + 1)
    if end < 0:
        kind = "comment" if opening == "/*" else "quote"
        raise QueryError(
            f"a {kind} is not closed", found=shortened(text[start:]), expected=f"a closing {kind}"
        )
    return end


def _quote_end(text: str, quote: str, at: int) -> int:
    """Behind the closing quote, -1 if there is none. A backslash or a second quote makes one literal."""
    while (match := _IN_QUOTES[quote].search(text, at)) is not None:
        at = match.start()
        if match[0] == quote and text[at + 1 : at + 2] != quote:
            return at + 1
        at += 2
    return -1


def shortened(text: str) -> str:
    """The beginning of a text, for an error.

    >>> shortened("a" * 100)[-4:]
    'aa …'
    """
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"
