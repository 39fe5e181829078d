"""Options of file sources and sinks, with one spelling of their values: Spark's names, and a few of our own.

What is not in the table is refused: an option that is passed over without a word reads other rows than its
writer thinks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from penstock.model.durations import format_duration, parse_duration
from penstock.model.errors import ExpressionError, did_you_mean, shown
from penstock.model.formats.description import Options
from penstock.model.formats.time_patterns import time_pattern


@dataclass(frozen=True)
class Option:
    """One option: where it means something ('source', 'sink'), and how its value is read."""

    spell: Callable[[object], str]
    roles: tuple[str, ...] = ("source",)


def spelled(format_: str, given: Iterable[tuple[str, object]]) -> Options:
    """The options of a format, sorted, each name and value in its one spelling.

    >>> spelled("csv", [("Header", True), ("delimiter", ";")])
    (('header', 'true'), ('sep', ';'))
    """
    options: dict[str, str] = {}
    for name, value in given:
        known = _name(format_, name)
        try:
            options[known] = OPTIONS[format_][known].spell(value)
        except ExpressionError as error:
            raise ExpressionError(
                f"option '{name}': {error.problem}",
                found=error.found or shown(value),
                expected=error.expected,
                hint=error.hint,
            ) from None
    return tuple(sorted(options.items()))


def check_role(format_: str, options: Options, role: str) -> None:
    """Refuse an option that means nothing for a source, or for a sink."""
    for name, _ in spelled(format_, options):
        if role not in OPTIONS[format_][name].roles:
            fitting = [n for n, option in OPTIONS[format_].items() if role in option.roles]
            raise ExpressionError(
                f"option '{name}' means nothing for a {role} of {format_}",
                found=f"{name}='{dict(options).get(name, '')}'",
                expected=f"one of: {', '.join(fitting)}" if fitting else "no options",
                hint="times are written as ISO text in UTC" if name == "timestampFormat" else "leave it out",
            )


def _name(format_: str, name: str) -> str:
    known = {option.lower(): option for option in OPTIONS[format_]}  # Spark looks at no case either
    wanted = _OTHER_NAMES.get(str(name).lower(), str(name).lower())
    if wanted in known:
        return known[wanted]
    there = ", ".join(OPTIONS[format_])
    if wanted in _SPARK_ONLY:
        raise ExpressionError(
            f"option '{name}' of Spark is not supported", expected=f"one of: {there}", hint="leave it out"
        )
    raise ExpressionError(
        f"unknown option '{name}' of {format_}",
        expected=f"one of: {there}",
        hint=did_you_mean(str(name), OPTIONS[format_]),
    )


def _flag(value: object) -> str:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ExpressionError("neither true nor false", expected="true or false")
    return text


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ExpressionError("no text", expected="a text")
    return value


def _character(value: object) -> str:
    text = {"\\t": "\t"}.get(value, value) if isinstance(value, str) else ""
    if len(text) != 1 or text in "\r\n" or not text.isascii():
        raise ExpressionError("not one character", expected="one ASCII character")
    return text


def _quote(value: object) -> str:
    return "" if value == "" else _character(value)


def _pattern(value: object) -> str:
    time_pattern(_text(value))
    return str(value)


def _duration(value: object) -> str:
    # In YAML a number of seconds comes as text.
    seconds = float(value) if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value) else value
    length = parse_duration(seconds)  # type: ignore[arg-type]  # it refuses what is none
    if length < 0:
        raise ExpressionError("below zero", expected="0 seconds or more")
    return format_duration(length)


def _compression(value: object) -> str:
    text = {"uncompressed": "none"}.get(str(value).lower(), str(value).lower())
    if text not in _CODECS:
        raise ExpressionError(
            "unknown compression", expected=f"one of: {', '.join(_CODECS)}", hint=did_you_mean(text, _CODECS)
        )
    return text


def _bytes(value: object) -> str:
    text = str(value).strip()
    if isinstance(value, bool) or not text.isascii() or not text.isdigit() or not int(text):
        raise ExpressionError("not a number of bytes", expected="a whole number above 0, such as 1048576")
    return str(int(text))


_CODECS = ("none", "snappy", "gzip", "zstd")  # those that both writers, Spark's and Arrow's, know
_BOTH = ("source", "sink")
# How a source finds its files: ours, not Spark's.
_FINDING = {"settle": Option(_duration), "wait": Option(_flag), "moved_from": Option(_text)}
OPTIONS: Mapping[str, Mapping[str, Option]] = {
    "csv": {
        "append": Option(_flag, ("sink",)),
        "header": Option(_flag, _BOTH),
        "sep": Option(_character, _BOTH),
        "quote": Option(_quote),
        "comment": Option(_character),
        "nullValue": Option(_text),
        "timestampFormat": Option(_pattern),
        "max_line": Option(_bytes),
        "tail": Option(_flag),
        **_FINDING,
    },
    "json": {
        "append": Option(_flag, ("sink",)),
        "timestampFormat": Option(_pattern),
        "max_line": Option(_bytes),
        "tail": Option(_flag),
        **_FINDING,
    },
    "parquet": {
        "append": Option(_flag, ("sink",)),
        "compression": Option(_compression, ("sink",)),
        **_FINDING,
    },
}
_OTHER_NAMES = {"delimiter": "sep", "codec": "compression"}
_SPARK_ONLY = frozenset(
    {
        "allowbackslashescapinganycharacter", "allowcomments", "allownonnumericnumbers",
        "allownumericleadingzeros", "allowsinglequotes", "allowunquotedcontrolchars",
        "allowunquotedfieldnames", "charset", "chartoescapequoteescaping", "columnnameofcorruptrecord",
        "compression", "dateformat", "datetimerebasemode", "dropfieldifallnull", "emptyvalue",
        "enabledatetimeparsingfallback", "encoding", "enforceschema", "escape", "escapequotes",
        "ignoreleadingwhitespace", "ignoretrailingwhitespace", "inferschema", "int96rebasemode", "linesep",
        "locale", "maxcharspercolumn", "maxcolumns", "mergeschema", "mode", "modifiedafter",
        "modifiedbefore", "multiline", "nanvalue", "negativeinf", "pathglobfilter", "positiveinf",
        "prefersdate", "primitivesasstring", "quoteall", "recursivefilelookup", "samplingratio",
        "timestampntzformat", "timezone", "unescapedquotehandling",
    }
)  # fmt: skip
