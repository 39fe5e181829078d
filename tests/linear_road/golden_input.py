"""The golden input, and a small builder of inputs, for the validator's tests."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

# The data lies beside the repository; LINEAR_ROAD_DATA names another place.
SHARED = Path(os.environ.get("LINEAR_ROAD_DATA", Path(__file__).parents[3] / "shared" / "data"))
GOLDEN = SHARED / "golden"
MITSIM = SHARED / "mitsim"
# Who develops without the data may skip these tests. In CI they fail, so that nobody takes a skip for a
# success.
needs_data = pytest.mark.skipif(
    not GOLDEN.is_dir() and os.environ.get("CI") != "true", reason="the shared Linear Road data is not there"
)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def report(
    time: int, vid: int, pos: int, *, spd: int = 0, xway: int = 0, lane: int = 1, direction: int = 0
) -> str:
    """An input row of type 0."""
    return f"0,{time},{vid},{spd},{xway},{lane},{direction},{pos // 5280},{pos},-1,-1,-1,-1,-1,-1"


def balance(time: int, vid: int, qid: int) -> str:
    return f"2,{time},{vid},-1,-1,-1,-1,-1,-1,{qid},-1,-1,-1,-1,-1"


def daily(time: int, vid: int, qid: int, day: int, xway: int = 0) -> str:
    return f"3,{time},{vid},-1,{xway},-1,-1,-1,-1,{qid},-1,-1,-1,-1,{day}"


def travel(time: int, vid: int, qid: int, sinit: int, send: int, dow: int, tod: int, xway: int = 0) -> str:
    return f"4,{time},{vid},-1,{xway},-1,-1,-1,-1,{qid},{sinit},{send},{dow},{tod},-1"


def by_time(*rows: str) -> list[str]:
    """The rows in the order of their Time."""
    return sorted(rows, key=lambda row: int(row.split(",")[1]))


@dataclass(frozen=True)
class Case:
    """An input written to disk; `expected` runs the oracle over it."""

    directory: Path

    def expected(self, rows: list[str], history: Path | None = None) -> list[str]:
        from penstock.linear_road.validate import validate

        source, out = self.directory / "rows.dat", self.directory / "expected.csv"
        source.write_text("\n".join(rows) + "\n")
        validate(source, history=history, expected=out)
        return lines(out)
