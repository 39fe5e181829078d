"""Patterns of LIKE and RLIKE, and units of date_trunc: checked once, so that no tuple can fail on them.

Regular expressions are Java's in Spark and Python's in the reference engine. We accept only what both read
alike. Java's `.` and `$` know more line ends than Python's, so they are spelt out for Python.
"""

from __future__ import annotations

import re

from penstock.model.errors import ExpressionError, did_you_mean

UNITS = {
    "YEAR": "year", "YYYY": "year", "YY": "year", "QUARTER": "quarter",
    "MONTH": "month", "MON": "month", "MM": "month", "WEEK": "week", "DAY": "day", "DD": "day",
    "HOUR": "hour", "MINUTE": "minute", "SECOND": "second",
    "MILLISECOND": "millisecond", "MICROSECOND": "microsecond",
}  # fmt: skip
_ENDS = r"\n\r\u0085\u2028\u2029"
_DOT = f"[^{_ENDS}]"
_END = rf"(?=(?:\r\n|[{_ENDS}])?\Z)"
_TOKEN = re.compile(r"\\(?P<escape>.)|(?P<group>\(\?:?)|(?P<other>.)", re.DOTALL)
_ESCAPES = set("dDwWsSbBtnrf") | set("\\.^$|?*+()[]{}-/'\"&#@!%,:;<>=~` _")
_REPEATS = re.compile(r"\{[0-9]{1,9}(,([0-9]{1,9})?)?\}")
# The edge of a word, and any other place. Before Java 19, letters beyond ASCII belong to words for \b but not
# for \w. In Python before 3.14, \B finds nothing in an empty text. So they are spelt out.
_EDGE = r"(?:(?<=\w)(?!\w)|(?<!\w)(?=\w))"
_NO_EDGE = r"(?:(?<=\w)(?=\w)|(?<!\w)(?!\w))"
# Java also looks between the two halves of a character beyond 16 bits, where no word can begin or end.
_EDGES = {r"\b": _EDGE, r"\B": rf"(?:(?<![\x{{D800}}-\x{{DBFF}}]){_NO_EDGE})"}


def checked(name: str, constant: object) -> str:
    """Refuse a bad pattern of LIKE or RLIKE, or a bad unit of date_trunc; a unit gets its one spelling."""
    if not isinstance(constant, str):
        raise ExpressionError(
            f"{name} takes a text in quotes", expected="for example 'a%'" if name == "LIKE" else ""
        )
    if name == "date_trunc":
        return unit(constant)
    like_pattern(constant) if name == "LIKE" else regex(constant)
    return constant


def unit(text: str) -> str:
    """The one spelling of a unit of date_trunc."""
    if text.upper() not in UNITS:
        raise ExpressionError(
            f"date_trunc knows no unit '{text}'",
            expected=f"one of: {', '.join(sorted(set(UNITS.values())))}",
            hint=did_you_mean(text, UNITS.values()),
        )
    return UNITS[text.upper()]


def like_pattern(pattern: str) -> re.Pattern[str]:
    r"""LIKE as a regular expression: % is any text, _ one character; a backslash takes %, _ and \ literally.

    >>> bool(like_pattern("a%").fullmatch("abc")), bool(like_pattern("a\\%").fullmatch("abc"))
    (True, False)
    """
    # Between two %, the leftmost match is as good as any later one. So none is tried again: patterns with
    # many % would take time to the power of their number.
    pieces = _like_pieces(pattern)
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
    return re.compile(f"{pieces[0]}{middle}.*{pieces[-1]}", re.DOTALL)


def _like_pieces(pattern: str) -> list[str]:
    """Regular expressions of fixed length for what stands between the % of a LIKE pattern."""
    pieces: list[list[str]] = [[]]
    letters = iter(pattern)
    for letter in letters:
        if letter == "%":
            pieces.append([])
        elif letter == "\\":
            escaped = next(letters, "")
            if escaped not in ("_", "%", "\\"):
                raise ExpressionError(
                    f"the LIKE pattern '{pattern}' escapes '{escaped}'",
                    expected="a backslash before _, % or \\ only",
                )
            pieces[-1].append(re.escape(escaped))
        else:
            pieces[-1].append("." if letter == "_" else re.escape(letter))
    return ["".join(piece) for piece in pieces]


def regex(pattern: str) -> re.Pattern[str]:
    """A pattern that Java and Python read alike, for `search`."""
    parts, inside = [], False  # inside: of a character class, [...]
    for match in _TOKEN.finditer(pattern):
        part = match[0]
        if match["escape"]:
            _need(match["escape"] in _ESCAPES, pattern, part)
            _need(not (inside and part in _EDGES), pattern, part)
            part = _NO_EDGE if part == r"\B" else part
        elif match["group"]:
            _need(
                inside or part == "(?:" or (match.start() == 0 and pattern.startswith("(?i)")), pattern, "(?"
            )
        elif inside:
            _need(part != "[" and pattern[match.start() : match.start() + 2] != "&&", pattern, part)
            # A bracket right after the opening one means different things in the two languages.
            _need(not (part == "]" and pattern[match.start() - 1] in "[^"), pattern, "[]")
            inside = part != "]"
        else:
            inside = part == "["
            repeats = part != "{" or _REPEATS.match(pattern, match.start()) is not None
            _need(repeats, pattern, part, hint="a brace that stands for itself needs a backslash")
            part = {".": _DOT, "$": _END}.get(part, part)
        parts.append(part)
    try:
        return re.compile("".join(parts), re.ASCII)
    except re.error as error:
        raise ExpressionError(f"'{pattern}' is not a regular expression", found=str(error)) from None


def for_java(pattern: str) -> str:
    r"""A pattern that `regex` has accepted, so that every version of Java reads it alike.

    >>> for_java(r"\\b\d+") == r"\\b\d+", for_java(r"a\b").startswith("a(?:(?<=")
    (True, True)
    """
    return "".join(_EDGES.get(match[0], match[0]) for match in _TOKEN.finditer(pattern))


def _need(ok: bool, pattern: str, part: str, *, hint: str = "") -> None:
    if not ok:
        raise ExpressionError(
            f"the pattern '{pattern}' uses '{part}'",
            expected="what Java and Python read alike: "
            ". [] () (?:) | * + ? {n,m} ^ $ \\d \\w \\s \\b, (?i) in front",
            hint=hint,
        )
