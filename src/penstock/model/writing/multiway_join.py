"""Joins of three and more streams, as a chain or star of joins of two (Gu and Yu, Sect. 5; S15).

In a *chain* each stream is near the one before it, in a *star* near the first. A row between two boxes
carries the timestamp of its earliest tuple, which need not be the tuple that the next stream must be near. So
the next box looks a little further, and a condition on the tuples' own timestamps picks the exact pairs. It
reads them from the timestamp columns, so streams whose columns do not show them are refused there. Each box
is distributed like any join.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, Unpack

from penstock.model.durations import parse_duration
from penstock.model.error_location import located
from penstock.model.errors import NetworkError, Where, caller, did_you_mean
from penstock.model.writing.arrow import first_of
from penstock.model.writing.box_builder import Duration
from penstock.model.writing.combining import key_pairs

if TYPE_CHECKING:
    from penstock.model.writing.stream import Stream

Within = Duration | tuple[Duration, Duration]
SHAPES = ("chain", "star")
_EXAMPLE = 'ps.join(a, b, on="k", within="1 minute")'


class Spread(TypedDict, total=False):
    """How a join is distributed: the arguments of `Stream.join` that do not change its pairs."""

    distribution: str
    servers: int | None
    master: str
    placement: str
    sample: Duration
    threshold: float | None
    memory: int | None
    when_full: str


class JoinOptions(Spread, total=False):
    """All arguments of `Stream.join` but the streams and `within`."""

    on: str | Iterable[str | tuple[str, str]]
    where: str
    suffix: str
    name: str | None


def join(
    *streams: Stream,
    on: str | Iterable[str] = (),
    within: Within | Sequence[Within],
    shape: str = "chain",
    where: str = "",
    name: str | None = None,
    **spread: Unpack[Spread],
) -> Stream:
    """Join two or more streams: `ps.join(a, b, c, on="vid", within="10 seconds", distribution="diffused")`.

    `on`: columns that all streams have. `within`: one bound for all steps, or a list with one for each stream
    after the first. `where`: a condition on the whole row. A column of the n-th stream whose name is taken
    gets the suffix `_n`. `spread`: options of `Stream.join`.
    """
    line = caller()
    _check_arguments(streams, shape, line)
    with located(name or "join", line, part="within"):
        bounds = _bounds(within, len(streams) - 1)
    pairs = key_pairs(on)
    rows, near = streams[0], _Part(streams[0], streams[0].type.timestamp)
    # How far the tuple that the next one must be near may lie behind the timestamp of the row so far.
    reach = 0
    for step, (stream, (after, before)) in enumerate(zip(streams[1:], bounds, strict=True), 2):
        last = step == len(streams)
        suffix = f"_{step}"
        exact = ""
        if reach:
            exact = _near(near, _part(stream, rows, pairs, suffix), after, before, line)
        joined = rows.join(
            stream,
            on=pairs,
            within=(_microseconds(reach + after), _microseconds(before)),
            where=_both(exact, where if last else ""),
            suffix=suffix,
            name=name if last else f"{name}_{step}" if name else None,
            **spread,
        )
        if shape == "chain":
            near, reach = _part(stream, rows, pairs, suffix), reach + after
        else:
            reach = max(reach, before)
        rows = joined
    return rows


def _check_arguments(streams: Sequence[Stream], shape: str, line: Where) -> None:
    if len(streams) < 2:
        raise NetworkError(
            "a join of fewer than two streams",
            where=line,
            found=str(len(streams)),
            expected="two or more",
            hint=_EXAMPLE,
        )
    if shape not in SHAPES:
        raise NetworkError(
            "unknown shape of a join",
            where=line,
            found=f"'{shape}'",
            expected=f"one of: {', '.join(SHAPES)}",
            hint=did_you_mean(shape, SHAPES),
        )
    for stream in streams:
        first_of([stream], "join", _EXAMPLE)


def _both(exact: str, where: str) -> str:
    """Both conditions; either may be empty."""
    return f"{exact} AND ({where})" if exact and where else exact or where


def Join(  # noqa: N802 - a box
    left: Stream, right: Stream, *, within: Within, **options: Unpack[JoinOptions]
) -> Stream:
    """The join of two streams, `ps.Join(a, b, on="vid", within="10 seconds")`: as `Stream.join`."""
    return left.join(right, within=within, **options)


def _bounds(within: Within | Sequence[Within], steps: int) -> list[tuple[int, int]]:
    many = list(within) if isinstance(within, list) else [within] * steps
    if len(many) != steps:
        raise NetworkError(
            "within: not one for each stream after the first",
            where=caller(),
            found=f"{len(many)} for {steps}",
            expected=f"one value, or a list of {steps}",
        )
    pairs = [each if isinstance(each, tuple) else (each, each) for each in many]
    return [(parse_duration(after), parse_duration(before)) for after, before in pairs]


@dataclass(frozen=True)
class _Part:
    """A stream that is part of the rows, and the name under which they show its timestamp column."""

    stream: Stream
    column: str | None


def _part(stream: Stream, rows: Stream, on: Sequence[tuple[str, str]], suffix: str) -> _Part:
    """The stream as the right side of these rows."""
    column = stream.type.timestamp
    # Equal columns of one name are one column.
    taken = column is not None and column in rows.schema and (column, column) not in on
    return _Part(stream, f"{column}{suffix}" if taken else column)


def _near(one: _Part, other: _Part, after: int, before: int, line: Where) -> str:
    """The condition that these parts of a row are near each other."""
    if other.column is None:
        return ""  # the box refuses a stream without timestamps
    for part in (one, other):
        _check_shows_time(part.stream, line)
    return f"unix_micros(`{other.column}`) - unix_micros(`{one.column}`) BETWEEN {-before} AND {after}"


def _check_shows_time(stream: Stream, line: Where) -> None:
    """Refuse a stream whose columns do not tell when its tuples were."""
    time, schema = stream.type.timestamp, stream.schema
    if time not in schema:
        raise NetworkError(
            f"'{stream.name}' has left out its timestamp column '{time}', which tells what is near",
            where=line,
            found=schema.ddl(),
            expected=f"{time} TIMESTAMP, ...",
            hint=f"keep it, for example .select('{time}', ...)",
        )
    if not stream.type.shows_stamp:
        raise NetworkError(
            f"'{stream.name}' does not show the times by which its tuples are near others",
            where=line,
            found="pairs: they show the time of the left tuple, and have the earlier one of the two",
            expected="tuples that show their own time",
            hint="give ps.join the streams that the pairs are made of",
        )


def _microseconds(length: int) -> str:
    return f"{length} microseconds"
