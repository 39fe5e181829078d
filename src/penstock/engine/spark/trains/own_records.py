"""Small records in the directory of a sub-network: which run it is, what is published, which state is void.

Each says which directory it belongs to, so that one copied from elsewhere is refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from penstock.engine.contract.train_log import TrainLog
from penstock.store.durable import read_record, write_record
from penstock.store.errors import CorruptFileError, MissingFileError

_PUBLISHED, _VOID, _RUN = "published.json", "void_state.json", "run.json"
_RESTORE = "restore the checkpoint from a copy, or start with a new one and new output folders"


def void_state(directory: Path, stages: Iterable[str]) -> None:
    """Note that the state of these stages after the last commit is void: the next train starts without it."""
    last = TrainLog(directory).last_commit()
    _write_own(directory / _VOID, voided(directory) | dict.fromkeys(stages, last), sync=True)


def voided(directory: Path) -> dict[str, int]:
    """By stage: the train after which its state is void."""
    return _read_own(directory / _VOID)


def run_of(directory: Path, last: int) -> str:
    """An identifier that tells this directory's output files from those of any other.

    It is made with the directory and kept as long.
    """
    run = _read_own(directory / _RUN).get("run")
    if run is None:
        if last >= 0:
            # A train that runs again under another name would give its rows twice.
            raise lost_records(f"{directory / _RUN} is gone, which names the output files of this run")
        _write_own(directory / _RUN, {"run": uuid.uuid4().hex[:8]}, sync=True)
    return str(run or _read_own(directory / _RUN)["run"])


def is_published(directory: Path, train: int) -> bool:
    """Whether the train is known to be published. If in doubt it is not: to publish again is harmless."""
    try:
        return bool(_read_own(directory / _PUBLISHED).get("train") == train)
    except CorruptFileError:
        return False


def note_published(directory: Path, train: int, *, sync: bool) -> None:
    """Note that a train is published, at the end of a run or when nothing has come for a while.

    The next start then need not publish it again, and its files may be gone.
    """
    _write_own(directory / _PUBLISHED, {"train": train}, sync=sync)


def _write_own(path: Path, body: Mapping[str, Any], *, sync: bool = False) -> None:
    """Write a record that says which directory it belongs to."""
    write_record(path, {"of": path.parent.name, "body": dict(body)}, sync=sync)


def _read_own(path: Path) -> dict[str, Any]:
    """Read such a record; {} if there is none. One that was copied here from elsewhere is refused."""
    try:
        record = read_record(path)
    except FileNotFoundError:
        return {}
    if record.get("of") != path.parent.name or not isinstance(record.get("body"), dict):
        raise CorruptFileError(f"{path}: this record belongs elsewhere", hint=_RESTORE)
    return dict(record["body"])


def lost_records(problem: str) -> MissingFileError:
    """The refusal of a checkpoint that lacks something it once had."""
    return MissingFileError(f"{problem}: records are lost", hint=_RESTORE)
