"""Joins of three and more streams, as chain or star of joins of two (Gu and Yu, Sect. 5; S15: the paper's future work).

In a *chain* each stream is near the one before it, in a *star* near the first. What travels between two boxes is stamped with the earliest
tuple so far, which need not be the one that the next stream must be near to; so the next box looks a little further and a
condition on the tuples' own timestamps says exactly what belongs together. Each box is spread as any join is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.model.durations import parse_duration
from penstock.model.error_location import located
from penstock.model.errors import NetworkError, caller, did_you_mean
from penstock.model.writing.arrow import first_of
from penstock.model.writing.box_builder import Duration

if TYPE_CHECKING:
    from penstock.model.writing.stream import Stream

Within = Duration | tuple[Duration, Duration]
SHAPES = ("chain", "star")


def join(
    *streams: Stream,
    on: str | Iterable[str] = (),
    within: Within | Sequence[Within],
    shape: str = "chain",
    where: str = "",
    name: str | None = None,
    **spread: Any,
) -> Stream:
    """Join two or more streams: `ps.join(a, b, c, on="vid", within="10 seconds", distribution="diffused")`.

    `on`: columns that all streams have. `within`: one for all steps, or a list with one for each stream after the first. `where`: a
    condition on the whole row. A column of the n-th stream whose name is taken gets `_n` behind it. `spread`: see `Stream.join`.
    """
    place = caller()
    if len(streams) < 2:
        raise NetworkError("a join of fewer than two streams", where=place, found=str(len(streams)), expected="two or more", hint='ps.join(a, b, on="k", within="1 minute")')  # fmt: skip
    if shape not in SHAPES:
        raise NetworkError("no such shape of a join", where=place, found=f"'{shape}'", expected=f"one of: {', '.join(SHAPES)}", hint=did_you_mean(shape, SHAPES))  # fmt: skip
    with located(name or "join", place, part="within"):
        bounds = _bounds(within, len(streams) - 1)
    for stream in streams:
        first_of([stream], "join", 'ps.join(a, b, on="k", within="1 minute")')
    made, near = streams[0], streams[0].type.timestamp
    reach = 0  # how far behind the stamp of a row so far the tuple may be that the next one must be near to
    for step, (stream, (after, before)) in enumerate(zip(streams[1:], bounds, strict=True), 2):
        last = step == len(streams)
        suffix = f"_{step}"
        mine = _renamed(stream.type.timestamp, made, suffix)
        exact = _near(near, mine, after, before) if reach else ""
        conditions = [
            text
            for text in (exact, f"({where})" if where and last and exact else where if last else "")
            if text
        ]
        made = made.join(
            stream,
            on=on,
            within=(_seconds(reach + after), _seconds(before)),
            where=" AND ".join(conditions),
            suffix=suffix,
            name=name if last else f"{name}_{step}" if name else None,
            **spread,
        )
        near, reach = (mine, reach + after) if shape == "chain" else (near, max(reach, before))
    return made


def Join(left: Stream, right: Stream, *, within: Within, **options: Any) -> Stream:  # noqa: N802 - a box, as one writes it
    """The join box of two streams, `ps.Join(a, b, on="vid", within="10 seconds", distribution="auto", servers=4)`: as `Stream.join`."""
    return left.join(right, within=within, **options)


def _bounds(within: Any, steps: int) -> list[tuple[int, int]]:
    many = list(within) if isinstance(within, list) else [within] * steps
    if len(many) != steps:
        raise NetworkError("within: not one for each stream after the first", where=caller(), found=f"{len(many)} for {steps}", expected=f"one value, or a list of {steps}")  # fmt: skip
    pairs = [each if isinstance(each, tuple) else (each, each) for each in many]
    return [(parse_duration(after), parse_duration(before)) for after, before in pairs]


def _renamed(column: str | None, left: Stream, suffix: str) -> str | None:
    return column + suffix if column is not None and column in left.type.schema else column


def _near(one: str | None, other: str | None, after: int, before: int) -> str:
    return f"unix_micros(`{other}`) - unix_micros(`{one}`) BETWEEN {-before} AND {after}"


def _seconds(microseconds: int) -> str:
    return f"{microseconds} microseconds"
