"""Writers that do as they like: whatever they do to a folder, each tuple is read once, or a letter tells.

Every line has a number of its own, so a doubled tuple shows, and no prefix of a line is a tuple, so half a
tuple shows too. Time passes only when the case says so.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.connectors.contract import Slice, SliceLostError
from penstock.connectors.files.discovery import source_files
from penstock.connectors.files.discovery.settling import Settling
from penstock.connectors.files.tail import TailPosition
from penstock.connectors.files.text import TextPosition
from penstock.connectors.loading import input_for
from penstock.model.boxes import Source
from penstock.model.errors import Where
from penstock.model.formats.files import csv
from penstock.model.types import Schema
from soak import count

SCHEMA = "k STRING, v INT"
FIRST = 100_000  # all numbers have six digits


@dataclass
class Case:
    """A folder, its writer and its reader."""

    folder: Path
    dice: random.Random
    tail: bool
    clock: list[float] = field(default_factory=lambda: [0.0, 1_000_000.0])
    number: int = FIRST
    half: str = ""  # the rest of a line that was begun
    read: list[int] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    position: TextPosition | TailPosition | None = None
    steps: list[str] = field(default_factory=list)

    def __post_init__(self):
        options = {"tail": True} if self.tail else {"settle": "1 second"}
        format_ = csv(self.folder / "in", SCHEMA, **options)
        (self.folder / "in").mkdir()
        self.source = Source(name="s", where=Where(), format=format_, schema=Schema.parse(SCHEMA))
        self.restart()

    def restart(self):
        self.input = input_for(self.source, self.folder / "checkpoint")

    # -- the writer

    def lines(self):
        """Some new lines."""
        first, self.number = self.number, self.number + self.dice.randrange(1, 5)
        return "".join(f"a,{n}\n" for n in range(first, self.number))

    def path(self):
        return self.folder / "in" / f"{self.dice.randrange(4)}.csv"

    def write(self, path, text, mode="w"):
        with path.open(mode) as file:
            file.write(text)
        at = self.clock[1] + self.dice.choice((0, 0, 0.5))
        os.utime(path, (at, at))

    def create(self, path):
        if not path.exists():
            self.write(path, self.lines())

    def append(self, path):
        self.write(path, self.lines(), "a")

    def append_in_two(self, path):
        text = self.lines()
        cut = self.dice.randrange(1, len(text))
        self.write(path, text[:cut], "a")
        self.clock[0] += 0.3
        self.look()
        self.write(path, text[cut:], "a")

    def replace(self, path):
        aside = path.with_name(f".{path.name}")
        self.write(aside, self.lines())
        aside.replace(path)

    def truncate(self, path):
        if path.exists() and not self.tail:
            self.write(path, "".join(path.read_text().splitlines(keepends=True)[:1]))

    def delete(self, path):
        path.unlink(missing_ok=True)

    def touch(self, path):
        if path.exists():
            os.utime(path, (self.clock[1], self.clock[1]))

    # -- the reader

    def look(self, limit=None):
        taken = self.input.take(self.position, limit or self.dice.choice((1, 2, 3, 100)))
        if taken.slices or taken.refused:
            self.position = type(taken.position)(**json.loads(json.dumps(vars(taken.position))))
        for piece in [Slice.of(json.loads(json.dumps(s.plain()))) for s in taken.slices]:
            try:
                decoded = piece.tuples(self.source)
            except SliceLostError as lost:
                self.told.add(lost.path)
                continue
            assert decoded.refused.num_rows == 0, decoded.refused.to_pylist()
            assert decoded.tuples.num_rows == piece.rows
            self.read += decoded.tuples.column("v").to_pylist()
        self.told |= {letter["raw"] for letter in taken.refused}
        return bool(taken.slices or taken.refused or taken.more or taken.waiting)

    def pass_time(self):
        seconds = self.dice.choice((0.1, 0.5, 1.0, 3.0))
        self.clock[0] += seconds
        self.clock[1] += seconds

    def step(self):
        act = self.dice.choice(
            (
                self.create,
                self.append,
                self.append_in_two,
                self.replace,
                self.truncate,
                self.delete,
                self.touch,
                self.pass_time,
                self.pass_time,
                self.look,
                self.look,
                self.look,
                self.restart,
            )
        )
        self.steps.append(act.__name__)
        act(self.path()) if act.__code__.co_argcount == 2 and act.__name__ != "look" else act()

    def finish(self):
        for _ in range(100):
            self.clock[0] += 2.0
            self.clock[1] += 2.0
            if not self.look(1000) and not self.look(1000):
                return
        pytest.fail(f"the reader finds no end: {self.steps}")

    def check(self):
        assert len(self.read) == len(set(self.read)), ("doubled", self.steps)
        assert all(FIRST <= n < self.number for n in self.read), ("half a tuple", self.steps)
        for path in (self.folder / "in").iterdir():
            here = {int(line[2:]) for line in path.read_text().splitlines()}
            lost = here - set(self.read)
            assert not lost or str(path) in self.told, (path.name, sorted(lost), self.steps)


@pytest.mark.parametrize("tail", [False, True])
def test_whatever_a_writer_does_nothing_is_lost_in_silence(tmp_path, monkeypatch, tail, record_property):
    cases = count(40, soak=10_000)
    monkeypatch.setattr(source_files, "_WATCH_SECONDS", 0.0)
    monkeypatch.setattr(source_files, "_QUICK", 1e9)
    for seed in range(cases):
        folder = tmp_path / str(seed)
        folder.mkdir()
        clock = [0.0, 1_000_000.0]
        monkeypatch.setattr(
            source_files, "Settling", lambda s, c=clock: Settling(s, lambda: c[0], lambda: c[1])
        )
        case = Case(folder, random.Random(f"{tail} {seed}"), tail, clock)
        for _ in range(40):
            case.step()
        case.finish()
        case.check()
    record_property(f"folders_with_careless_writers{'_tailed' if tail else ''}", cases)
