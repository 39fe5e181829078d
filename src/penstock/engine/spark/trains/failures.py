"""Why a train failed: what to do about it, and the one message that tells the user.

Spark reports a failure as hundreds of lines. What matters is in a few of them: the error that the task
raised, or the sign that a process is gone.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from penstock.engine.contract.account import AccountError
from penstock.engine.contract.ticket import Ticket
from penstock.model.errors import PenstockError, one_line

ATTEMPTS = 3
"""How often a train may fail before the run ends."""

_SHOWN = 3  # boxes or slices in a message


class Kind(StrEnum):
    """What has failed."""

    FUNCTION = "function"  # a user's function, or a box that refused what it got: the same again next time
    WORKER = "worker"  # a Python worker is gone
    EXECUTOR = "executor"  # a machine of the cluster is gone
    MEMORY = "memory"  # the JVM ran out of memory in one task
    DISK = "disk"  # no space left
    JVM = "jvm"  # Spark itself is gone
    ACCOUNT = "account"  # tuples do not add up; a task that Spark had to repeat may count twice
    REFUSED = "refused"  # Penstock refused to go on, in the driver
    OTHER = "other"

    @property
    def worth_another_try(self) -> bool:
        """Whether the same train may pass next time, in the same process."""
        return self in (Kind.WORKER, Kind.EXECUTOR, Kind.MEMORY, Kind.ACCOUNT, Kind.OTHER)


class TrainFailedError(PenstockError):
    """A train failed too often; `kind` says what failed."""

    def __init__(self, kind: Kind, problem: str, *, found: str = "", hint: str = "") -> None:
        self.kind = kind
        super().__init__(problem, found=found, hint=hint)


class PassingFailureError(TrainFailedError):
    """A failure that a new start may be free of: a process is gone, memory or disk were full."""


@dataclass(frozen=True)
class Doing:
    """What a train was doing when it failed."""

    subnetwork: str
    train: int
    boxes: tuple[str, ...] = ()
    slices: str = ""

    def __str__(self) -> str:
        shown = [repr(box) for box in self.boxes[:_SHOWN]]
        more = f" and {len(self.boxes) - _SHOWN} more" if len(self.boxes) > _SHOWN else ""
        boxes = f", box {', '.join(shown)}{more}" if shown else ""
        return f"sub-network '{self.subnetwork}', train {self.train}{boxes}"


def kind_of(error: BaseException) -> Kind:
    """Classify what a train raised."""
    if isinstance(error, PenstockError):
        return Kind.ACCOUNT if isinstance(error, AccountError) else Kind.REFUSED
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Kind.DISK
    if _gateway_gone(error):
        return Kind.JVM
    text = str(error)
    return next((kind for kind, sign in _SIGNS if sign.search(text)), Kind.OTHER)


def _gateway_gone(error: BaseException) -> bool:
    names = {type(each).__name__ for each in _chain(error)}
    return not names.isdisjoint({"Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError"})


def _chain(error: BaseException) -> Iterable[BaseException]:
    following: BaseException | None = error
    while following is not None:
        yield following
        following = following.__cause__ or following.__context__


# The first sign that is there decides: a lost executor is reported with the exit of its worker.
_SIGNS = (
    (Kind.DISK, re.compile(r"No space left on device|Disk quota exceeded|database or disk is full")),
    (Kind.EXECUTOR, re.compile(r"ExecutorLostFailure|Remote RPC client disassociated")),
    (Kind.FUNCTION, re.compile(r"^penstock\.\S*Error: ", re.MULTILINE)),
    (Kind.WORKER, re.compile(r"Python worker (?:exited unexpectedly|failed to connect back)")),
    (Kind.MEMORY, re.compile(r"java\.lang\.OutOfMemoryError|java\.lang\.StackOverflowError")),
)


def message_of(error: BaseException, doing: Doing, attempts: int = 1) -> PenstockError:
    """The one message for the user: what, where, and what to do."""
    kind = kind_of(error)
    if isinstance(error, PenstockError):
        return error
    times = f", {attempts} times" if attempts > 1 else ""
    if kind is Kind.FUNCTION:
        return TrainFailedError(kind, task_error(str(error)) + f"\n  in:       {_whole(doing)}")
    reason = cause(error) if kind in (Kind.OTHER, Kind.MEMORY, Kind.DISK) else ""
    return PassingFailureError(
        kind,
        f"{doing}: {PROBLEMS[kind]}{times}",
        found="; ".join(filter(None, (reason, doing.slices))),
        hint=_HINTS[kind],
    )


def _whole(doing: Doing) -> str:
    return "; ".join(filter(None, (str(doing), doing.slices)))


PROBLEMS = {
    Kind.WORKER: "a Python worker was killed or crashed",
    Kind.EXECUTOR: "Spark lost an executor",
    Kind.MEMORY: "the JVM failed in a task",
    Kind.DISK: "the disk is full",
    Kind.JVM: "Spark's JVM is gone",
    Kind.ACCOUNT: "its tuples do not add up",
    Kind.OTHER: "it failed",
}
_HINTS = {
    Kind.WORKER: "out of memory? `dmesg` tells; shorter trains (--train) need less. The same command goes on",
    Kind.EXECUTOR: "look at the executor's log; the same command goes on from the last train",
    Kind.MEMORY: "shorter trains (--train) need less, spark.driver.memory gives more",
    Kind.DISK: "make room, then give the same command: it goes on from the last train",
    Kind.JVM: "out of memory? `dmesg` tells. The same command goes on; with --restart it does by itself",
    Kind.OTHER: "--verbose shows the whole trace; the same command goes on from the last train",
}

_TASK_ERROR = re.compile(
    r"^penstock\.[\w.]*Error: (.*?)(?=^\s*SQLSTATE|^\s+at |^\n|\Z)", re.MULTILINE | re.DOTALL
)
_EXCEPTION = re.compile(
    r"^(?:Caused by: |: )?((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)): (.+)$", re.MULTILINE
)


def task_error(text: str) -> str:
    """The message of the Penstock error that a task raised, from the text in which Spark reports it."""
    messages = _TASK_ERROR.findall(text)
    return re.sub(r"\s*SQLSTATE: \w+\s*$", "", messages[-1]).rstrip() if messages else cause_in(text)


def cause(error: BaseException) -> str:
    """The first cause of an error in one line."""
    text = str(error).strip()
    if "\n" in text:
        return cause_in(text)
    return one_line(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def cause_in(text: str) -> str:
    r"""The first cause in a trace, Python's or Java's: the last one that it names.

    >>> cause_in("Job aborted\n\tat x\nCaused by: java.io.IOException: broken pipe\n\tat y")
    'IOException: broken pipe'
    """
    causes = [(name.rpartition(".")[2], why.strip()) for name, why in _EXCEPTION.findall(text)]
    plain = [each for each in causes if each[0] not in ("PythonException", "SparkException")] or causes
    return one_line(": ".join(plain[-1]) if plain else text.strip().splitlines()[0])


def slices_text(ticket: Ticket | None) -> str:
    """What a train reads, in a few words.

    >>> slices_text(None)
    ''
    """
    if ticket is None:
        return ""
    texts = [f"{name}: {_slice_text(part)}" for name, parts in ticket.slices.items() for part in parts]
    more = len(texts) - _SHOWN
    return "; ".join(texts[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _slice_text(part: object) -> str:
    """A slice by its file and where it lies there."""
    fields = vars(part)
    path = fields.get("path")
    at = [
        f"{name} {fields[name]}"
        for name in ("start", "end", "first", "last", "row", "rows")
        if name in fields
    ]
    return " ".join([str(path), *([f"({', '.join(at)})"] if at else [])]) if path else ", ".join(at)
