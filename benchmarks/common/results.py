"""The one writer of results: `results/YYYYMMDD/NAME-HHMMSS.json`, written once and never changed.

A figure of one machine on one day says little. So each file also holds the command, the commit, the machine,
the versions, the load and the seed. A run that fails leaves a file too, and so does one that gave wrong
answers.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.common import facts

RESULTS = facts.ROOT / "benchmarks" / "results"
_DIGITS = 5


@dataclass
class Record:
    """One run while it is measured. Set `figures`, and `warm_up` where the first part is not counted.

    >>> record = Record("engine-floor")
    >>> record.exit_code
    0
    >>> record.found_wrong("two rows differ")
    >>> record.exit_code
    1
    """

    name: str
    seed: int | None = None
    quick: bool = False
    config: dict[str, Any] = field(default_factory=dict)
    warm_up: Any = None
    figures: Any = None
    wrong: list[str] = field(default_factory=list)
    failure: str | None = None
    file: Path | None = None

    def found_wrong(self, what: str) -> None:
        """Note a wrong answer; the script then ends with 1."""
        self.wrong.append(what)

    @property
    def outcome(self) -> str:
        return "failed" if self.failure else "wrong" if self.wrong else "ok"

    @property
    def exit_code(self) -> int:
        return 0 if self.outcome == "ok" else 1


@contextlib.contextmanager
def recording(name: str, chosen: argparse.Namespace, **config: Any) -> Iterator[Record]:
    """Time the body and write its result, whatever happens in it. An error is recorded and raised again."""
    record = Record(name, chosen.seed, chosen.quick, dict(config))
    started, clock, load = datetime.now().astimezone(), time.monotonic(), facts.load()
    # Taken first: somebody may commit or edit while a long run goes on.
    source = {"commit": facts.commit(), "dirty": facts.is_dirty()}
    try:
        yield record
    except BaseException as error:
        record.failure = f"{type(error).__name__}: {error}"[:2000]
        raise
    finally:
        if not chosen.no_result:
            about = {
                "command": facts.command(),
                **source,
                "started": started.isoformat(timespec="seconds"),
                "seconds": round(time.monotonic() - clock, 1),
                "machine": facts.machine(),
                "versions": facts.versions(),
                "load": {"before": load, "after": facts.load()},
            }
            record.file = write(as_json(record, about), started)
        for what in record.wrong:
            print(f"WRONG: {what}")


def as_json(record: Record, about: Mapping[str, Any]) -> dict[str, Any]:
    """What a result file holds, in the order in which people read it."""
    return {
        "benchmark": record.name,
        **about,
        "quick": record.quick,
        "seed": record.seed,
        "config": plain(record.config),
        "outcome": record.outcome,
        "failure": record.failure,
        "wrong": record.wrong,
        "warm_up": plain(record.warm_up),
        "figures": plain(record.figures),
    }


def write(result: Mapping[str, Any], started: datetime) -> Path:
    """A new file; an existing one is never overwritten."""
    day = RESULTS / f"{started:%Y%m%d}"
    day.mkdir(parents=True, exist_ok=True)
    file = day / f"{result['benchmark']}-{started:%H%M%S}.json"
    with file.open("x", encoding="utf-8") as stream:
        json.dump(result, stream, indent=1, allow_nan=False)
        stream.write("\n")
    print(f"written: {file.relative_to(facts.ROOT)}")
    return file


def plain(value: Any) -> Any:
    """As JSON can hold it: five digits of a float, null for what is no number, paths as text.

    >>> plain({"a": (1.23456789, float("nan")), 2: Path("x")})
    {'a': [1.2346, None], '2': 'x'}
    """
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "item"):
        return plain(value.item())
    return str(value) if isinstance(value, Path) else value
