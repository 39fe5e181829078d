r"""User data on a terminal: control characters are shown, not sent.

Raw input may hold terminal escapes, which could hide lines, change the title or answer for the user.
"""

from __future__ import annotations

import re

# C0 but tab and newline, DEL, C1, line and paragraph separators, and what reverses the direction of text.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""The text with control characters as escapes; tabs and line ends stay.

    >>> print(printable("red: \x1b[31m"))
    red: \x1b[31m
    """
    return _CONTROL.sub(_escape, text)


def printable_line(text: str) -> str:
    r"""The same on one line.

    >>> print(printable_line("two\nlines"))
    two\nlines
    """
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
