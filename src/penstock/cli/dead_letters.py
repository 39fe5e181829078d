"""`penstock dead-letters`: which tuples were refused, where they stand, and why; and give them in again."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.load import load_network
from penstock.cli.printable import printable_line
from penstock.cli.refusals import refusals
from penstock.model.errors import PenstockError, one_line
from penstock.model.json_types import JsonObject
from penstock.store.dead_letters import SCHEMA, DeadLetters, reason_shape

_LATE = re.compile(r"timestamp (-?\d+) us is behind the horizon (-?\d+) us")
_ROWS = 3  # of each reason
_RAW = 120  # characters of a raw line
FORMATS = ("text", "json", "csv")

Letter = JsonObject


def dead_letters(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="The directory given to `penstock run --checkpoint`.")
    ],
    limit: Annotated[
        int,
        typer.Option(
            help="At most so many reasons, with up to 3 letters each; json, csv: letters. 0: all.", min=0
        ),
    ] = 20,
    form: Annotated[str, typer.Option("--format", help="text, json (lines) or csv.")] = "text",
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="NET",
            help="Give the lines that NET's sources refused to the network again, each once: "
            "after the format or schema was mended.",
        ),
    ] = None,
) -> None:
    """Show the tuples that were refused: how many by reason, with file, line and raw text."""
    with refusals():
        if form not in FORMATS:
            raise PenstockError(f"no format '{form}'", expected=f"one of: {', '.join(FORMATS)}")
        if not checkpoint.is_dir():
            raise PenstockError(f"{checkpoint} is no checkpoint", hint="give the directory of a run")
        if replay is not None:
            _replay(checkpoint, replay)
        elif form == "text":
            _show_groups(DeadLetters(checkpoint), limit)
        else:
            _show_letters(DeadLetters(checkpoint), limit, form)


# -- by reason


@dataclass
class _Group:
    """The letters of one box for one reason."""

    tuples: int = 0
    letters: list[Letter] = field(default_factory=list)


def _show_groups(letters: DeadLetters, limit: int) -> None:
    groups = _grouped(letters, limit if 0 < limit < _ROWS else _ROWS)
    shown = limit or len(groups)
    for (box, shape), group in groups[:shown]:
        typer.echo(f"{group.tuples:>9,}  {printable_line(box)}: {printable_line(one_line(shape, 200))}")
        for letter in group.letters:
            typer.echo(f"{'':>11}{letter_line(letter)}")
    if len(groups) > shown:
        rest = sum(group.tuples for _, group in groups[shown:])
        typer.echo(
            f"... and {len(groups) - shown:,} more reasons, {rest:,} tuples (--limit 0 shows all)", err=True
        )
    if not groups:
        typer.echo("no dead letters", err=True)


def _grouped(letters: DeadLetters, rows: int) -> list[tuple[tuple[str, str], _Group]]:
    """Box and reason without values -> letters, the most frequent first."""
    groups: dict[tuple[str, str], _Group] = {}
    for letter in _each(letters):
        key = (letter["box"] or "", reason_shape(letter["reason"] or ""))
        group = groups.setdefault(key, _Group())
        group.tuples += letter["tuples"]
        if len(group.letters) < rows:
            group.letters.append(letter)
    return sorted(groups.items(), key=lambda item: -item[1].tuples)


def _each(letters: DeadLetters) -> Iterator[Letter]:
    for table in letters.tables():
        yield from table.to_pylist()


def letter_line(letter: Letter) -> str:
    r"""One letter on one line: where, why if that says more than its group, and the raw text.

    >>> letter = {"file": "in/a.csv", "line": 7, "reason": "malformed", "raw": "1,\x1b[2J", "source": "cars"}
    >>> print(letter_line({**letter, "offset": "6", "tuples": 1}))
    in/a.csv:7  1,\x1b[2J
    """
    at = f"{letter['file']}:{letter['line']}" if letter["file"] and letter["line"] else letter["file"]
    at = at or f"{letter['source'] or '?'} #{letter['offset']}"
    late = late_text(letter["reason"] or "")
    raw = "" if letter["raw"] == letter["file"] else letter["raw"] or ""  # of a file refused as a whole
    parts = [at, late, one_line(raw, _RAW)]
    if letter["tuples"] > 1:
        parts.insert(1, f"{letter['tuples']:,} tuples")
    return printable_line("  ".join(part for part in parts if part))


def late_text(reason: str) -> str:
    """How late a tuple is, in readable time; empty if that is not why it was refused.

    >>> late_text("late: timestamp 5000000 us is behind the horizon 7500000 us of earlier trains")
    '1970-01-01 00:00:05, 2.5 s behind 1970-01-01 00:00:07.500000'
    """
    match = _LATE.search(reason)
    if match is None:
        return ""
    stamp, horizon = int(match[1]), int(match[2])
    return f"{_time(stamp)}, {(horizon - stamp) / 1e6:,g} s behind {_time(horizon)}"


def _time(us: int) -> str:
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)
    except OverflowError:
        return f"{us} us"
    return moment.replace(tzinfo=None).isoformat(sep=" ")


# -- letter by letter


def _show_letters(letters: DeadLetters, limit: int, form: str) -> None:
    rows = (letter for number, letter in enumerate(_each(letters)) if not limit or number < limit)
    (_write_json if form == "json" else _write_csv)(rows)


def _write_json(letters: Iterable[Letter]) -> None:
    for letter in letters:
        typer.echo(json.dumps(letter))


def _write_csv(letters: Iterable[Letter]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(SCHEMA.names)
    # A pipe gets the bytes as they were; a terminal must not act on them.
    shown = printable_line if sys.stdout.isatty() else str
    for letter in letters:
        writer.writerow(["" if value is None else shown(str(value)) for value in letter.values()])


# -- again


def _replay(checkpoint: Path, net: str) -> None:
    from penstock.connectors.files.replay import replay_letters
    from penstock.engine.contract.train_log import TrainLog

    network = load_network(net)
    replayed: Counter[str] = Counter()
    committed = {
        path.name: TrainLog(path).last_commit()
        for path in (checkpoint / "queries").glob("*")
        if path.is_dir()
    }
    for result in replay_letters(checkpoint, list(network.sources.values()), committed):
        replayed[result.source] += result.lines
        for reason, letters in result.left.items():
            typer.echo(f"{result.source}: {letters:,} letters stay: {reason}", err=True)
        if result.lines:
            typer.echo(f"{result.source}: {result.lines:,} lines given in again, in {result.file}")
    if not replayed.total():
        typer.echo("nothing to give in again", err=True)


# -- what a run says about late tuples


def lateness_advice(letters: DeadLetters, late: Sequence[tuple[str, int, int]]) -> list[str]:
    """For sources with more than 1 % late tuples: which `lateness` would have kept them.

    `late`: source, tuples that were late, tuples offered.
    """
    lines = []
    for source, tuples, offered in late:
        if tuples * 100 <= offered:
            continue
        behind = sorted(_behind(letters, source))
        if behind:
            most, nearly = behind[-1], behind[int(len(behind) * 0.99)]
            share = f"{100 * tuples / offered:.1f} %"
            some = f"; {_seconds(nearly)} more would have kept 99 % of them" if nearly < most else ""
            lines.append(
                f"{source}: {tuples:,} tuples ({share}) were late; "
                f"a lateness {_seconds(most)} longer would have kept all{some}"
            )
    return lines


def _seconds(us: int) -> str:
    return f"of {-(-us // 1_000_000):,} seconds".removeprefix("of ")


def _behind(letters: DeadLetters, source: str) -> Iterator[int]:
    for table in letters.tables():
        for box, reason in zip(table["box"].to_pylist(), table["reason"].to_pylist(), strict=True):
            match = _LATE.search(reason or "") if box == source else None
            if match is not None:
                yield int(match[2]) - int(match[1])
