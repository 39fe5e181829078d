"""What a run leaves for people: one flat file of answers, and the refused rows with file and line.

Idea: the tasks write answers as finished rows in many small files that never change, so the flat file is
their concatenation. A dead letter knows the delivered file and its line there. The driver knows which unit of
which second it put there. So each letter is traced to its file and line in the input.
docs/linear-road-semantics.md, "Input" and "Output".
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from penstock.linear_road.drive.driver import Feed
from penstock.linear_road.rows.inputs import Input
from penstock.linear_road.rows.read_blocks import lines_of
from penstock.linear_road.run.response_times import ResponseTimes
from penstock.store.durable import whole_file
from penstock.store.file_names import delivery_of

Letter = tuple[str, str, int, str]
"""A dead letter: reason, file, line in it from 1, the row as it came."""

LETTER_COLUMNS = ("reason", "source", "line", "raw")


def gather_answers(files: Iterable[Path], final: Path, responses: ResponseTimes) -> int:
    """Join the answer files as `final`, whole or not at all, and count response times.

    Returns the number of bytes.
    """
    with whole_file(final) as path, path.open("wb") as out:
        for file in files:
            with file.open("rb") as part:
                shutil.copyfileobj(part, out, 1 << 20)
            responses.add_file(file)
    return final.stat().st_size


def count_answers(files: Iterable[Path], responses: ResponseTimes) -> int:
    """Count response times without joining the files; returns the number of bytes."""
    size = 0
    for file in files:
        responses.add_file(file)
        size += file.stat().st_size
    return size


def write_letters(letters: Iterable[Letter], final: Path) -> int:
    """Write `dead_letters.csv`: a header, then one line a letter; returns how many."""
    count = 0
    with whole_file(final) as path, path.open("w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(LETTER_COLUMNS)
        for letter in letters:
            rows.writerow(letter)
            count += 1
    return count


@dataclass(frozen=True)
class Origins:
    """Traces letters of delivered files back to the input; `source` is None if the input is gone."""

    feed: Feed
    source: Input | None

    def trace(self, letters: Iterable[Letter]) -> Iterator[Letter]:
        """The letters with file and line of the input, in its order.

        A letter that the driver does not know stays as it is.
        """
        with_origin = [(self._origin(letter), letter) for letter in letters]
        known = [(origin, letter) for origin, letter in with_origin if origin is not None]
        if self.source is not None and known:
            # All letters at once: counting lines for each would read the input again and again.
            lines = lines_of(self.source, np.array([origin for origin, _ in known], np.int64))
            traced = [
                (origin, (letter[0], file, line, letter[3]))
                for (origin, letter), (file, line) in zip(known, lines, strict=True)
            ]
            yield from (letter for _, letter in sorted(traced, key=lambda pair: pair[0]))
        yield from (letter for origin, letter in with_origin if origin is None or self.source is None)

    def _origin(self, letter: Letter) -> int | None:
        delivery = delivery_of(letter[1])
        if delivery is None:
            return None
        second, group = delivery
        stored, row = self._unit(second, group, letter[2] - 1)
        return self._origins.get((second, stored, row))

    def _unit(self, second: int, group: int, row: int) -> tuple[int, int]:
        """The stored group that holds a row of a delivered one, and the number of the row there."""
        # A delivered group is its units one after the other, each a copy of a stored group.
        for _, stored in self.feed.plan[group] if group < len(self.feed.plan) else ():
            rows = self.feed.slices.slice(second, stored).rows
            if row < rows:
                return stored, row
            row -= rows
        return -1, -1

    @cached_property
    def _origins(self) -> dict[tuple[int, int, int], int]:
        """(second, stored group, row) of each refused row -> its offset in the input."""
        refused: list[list[int]] = self.feed.slices.refused.tolist()
        return {(second, group, row): origin for second, group, row, origin in refused}
