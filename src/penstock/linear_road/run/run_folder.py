"""Where a run lives: its output directory, its checkpoint, and how a run resumes.

Idea: the checkpoint remembers which command it belongs to. The same command resumes the run. Another command
on the same checkpoint, or an output directory whose checkpoint is gone, is refused before anything is
touched: a file with answers of two runs would be worthless.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from penstock.linear_road.errors import InputError
from penstock.linear_road.run.plan import RunPlan
from penstock.linear_road.run.record import Attempts, RunRecord
from penstock.store.durable import make_directory, open_text, write_text

ANSWERS, LETTERS, RUN = "answers.csv", "dead_letters.csv", "run.json"
CHECKPOINT = "_checkpoint"
"""Under --out; the underscore keeps readers of the answers out of it."""

_PARTS = "answers"

_OPTIONS = {
    "out": "--out",
    "input": "--input",
    "history": "--history",
    "speed": "--speed",
    "xways": "--xways",
    "from": "--from",
    "until": "--until",
    "qos": "--qos",
}


@dataclass(frozen=True)
class RunFolder:
    """The directories of a run; `resumed` if an earlier call has begun it."""

    out: Path
    checkpoint: Path
    resumed: bool = False
    created: tuple[Path, ...] = ()
    """The directories that did not exist before."""

    def discard(self) -> None:
        """Undo everything when a run cannot begin."""
        for entry in self.checkpoint.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for path in reversed(self.created):
            # Only empty directories go: somebody else may have put files there meanwhile.
            with contextlib.suppress(OSError):
                path.rmdir()

    @property
    def slices(self) -> Path:
        return self.checkpoint / "slices"

    @property
    def feed(self) -> Path:
        return self.checkpoint / "feed"

    @property
    def parts(self) -> Path:
        return self.checkpoint / _PARTS

    @property
    def log(self) -> Path:
        return self.checkpoint / "driver.log"

    @property
    def _notes(self) -> Path:
        return self.checkpoint / "attempts.jsonl"

    def note(self, event: str) -> None:
        """Record that the run was started, stopped or finished."""
        with open_text(self._notes, "a") as notes:
            notes.write(json.dumps({"event": event, "at": round(time.time(), 3)}) + "\n")

    def events(self) -> list[str]:
        """What has happened to this run so far."""
        if not self._notes.is_file():
            return []
        lines = self._notes.read_text(encoding="utf-8").splitlines()
        # A kill may have cut off the last line.
        return [json.loads(line)["event"] for line in lines if line.endswith("}")]

    @property
    def finished(self) -> bool:
        return "finished" in self.events()

    def record(self) -> RunRecord:
        """What a finished run has left."""
        file = self.out / RUN
        if not file.is_file():
            raise InputError(
                f"the run of checkpoint {self.checkpoint} is finished, but its {file} is gone",
                hint="remove the checkpoint to run again",
            )
        record: RunRecord = json.loads(file.read_text(encoding="utf-8"))
        return record

    def attempts(self) -> Attempts:
        """How often the run was started, stopped cleanly, and killed."""
        events = self.events()
        # The current attempt has not ended yet.
        starts, stops = events.count("started"), events.count("stopped")
        return {"starts": starts, "clean_stops": stops, "kills": max(0, starts - 1 - stops)}


def answers_of(out: Path) -> Path:
    """The answers of a run that has its checkpoint under --out: one file, or the folder of its parts."""
    joined = out / ANSWERS
    return joined if joined.is_file() else out / CHECKPOINT / _PARTS


def open_run_folder(plan: RunPlan) -> RunFolder:
    """The folders of a new run, or of one to resume; refuses what would mix two runs."""
    checkpoint = plan.checkpoint or plan.out / CHECKPOINT
    file = checkpoint / "run-plan.json"
    for name, path in (("--out", plan.out), ("--checkpoint", checkpoint)):
        if path.exists() and not path.is_dir():
            raise InputError(f"{name} {path} is a file", expected="a directory")
    if file.is_file():
        _same_run(plan, checkpoint, json.loads(file.read_text(encoding="utf-8")))
        make_directory(plan.out)
        return RunFolder(plan.out, checkpoint, resumed=True)
    if _has_entries(plan.out):
        raise InputError(
            f"--out {plan.out} already holds files, but its checkpoint is not at {checkpoint}",
            hint=(
                "a run goes on only with its own checkpoint: name it with --checkpoint, "
                "or choose another --out"
            ),
        )
    if _has_entries(checkpoint):
        raise InputError(f"--checkpoint {checkpoint} is not empty and belongs to no run of Linear Road")
    paths = (plan.out, checkpoint)
    folder = RunFolder(plan.out, checkpoint, created=tuple(path for path in paths if not path.exists()))
    for path in paths:
        make_directory(path)
    # With this file the folder belongs to the run: from here on the same command resumes it.
    write_text(file, json.dumps(plan.as_json(), indent=2) + "\n")
    return folder


def _same_run(plan: RunPlan, checkpoint: Path, begun: dict[str, str | float | None]) -> None:
    asked = plan.as_json()
    for name, option in _OPTIONS.items():
        if asked[name] != begun.get(name):
            raise InputError(
                f"the checkpoint {checkpoint} belongs to a run with {option} {_shown(begun.get(name))}, "
                f"not {_shown(asked[name])}",
                hint="give the same options to go on, or another --out and --checkpoint",
            )


def _shown(value: str | float | None) -> str:
    return "left out" if value is None else str(value)


def _has_entries(path: Path) -> bool:
    return path.is_dir() and any(path.iterdir())
