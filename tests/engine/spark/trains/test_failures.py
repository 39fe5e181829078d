"""Whatever a train raises becomes one short message: what, where, what to do."""

from __future__ import annotations

import errno

import pytest

from penstock.connectors.files.text import ByteRange
from penstock.engine.arrow.functions import call
from penstock.engine.contract.account import AccountError
from penstock.engine.contract.ticket import Ticket
from penstock.engine.spark.trains.attempts import run_train
from penstock.engine.spark.trains.failures import Doing, Kind, kind_of, message_of, slices_text
from penstock.model.boxes import Filter
from penstock.model.errors import NetworkError, PenstockError
from penstock.model.user_functions import function_of

DOING = Doing("out", 7, ("win",), "cars: in/a.csv (start 0, end 780)")
FRAMES = "".join(f"\n\tat org.apache.spark.Some.method{n}(Some.scala:{n})" for n in range(200))
ABORTED = (
    f"An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: Job aborted{FRAMES}"
)

PYTHON = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "stage.py", line 77, in __call__
    yield from self.run(partition, batches)
penstock.model.errors.NetworkError: net.py:18: box 'win': function net:boom failed: no seven
  found:    ValueError at net.py:6
  hint:     cope with it
 SQLSTATE: 38000
"""


class Py4JNetworkError(Exception):
    pass


CASES = {
    "a function": (RuntimeError(PYTHON), Kind.FUNCTION, ["net.py:18", "'win'", "net.py:6", "train 7"]),
    "a function, with the JVM's stack": (
        RuntimeError(ABORTED + "\n" + PYTHON + FRAMES),
        Kind.FUNCTION,
        ["net.py:6"],
    ),
    "a worker": (
        RuntimeError(
            f"{ABORTED}\nCaused by: SparkException: Python worker exited unexpectedly (crashed){FRAMES}"
        ),
        Kind.WORKER,
        ["worker", "'win'", "in/a.csv"],
    ),
    "an executor": (
        RuntimeError(f"{ABORTED}ExecutorLostFailure (executor 1 exited){FRAMES}"),
        Kind.EXECUTOR,
        ["executor"],
    ),
    "memory": (
        RuntimeError(f"{ABORTED}\nCaused by: java.lang.OutOfMemoryError: Java heap space{FRAMES}"),
        Kind.MEMORY,
        ["OutOfMemoryError: Java heap space", "--train"],
    ),
    "a full disk in the driver": (
        OSError(errno.ENOSPC, "No space left on device", "ck/tickets/1.json"),
        Kind.DISK,
        ["the disk is full", "ck/tickets/1.json", "make room"],
    ),
    "a full disk in a task": (
        RuntimeError(f"{ABORTED}\nCaused by: java.io.IOException: No space left on device{FRAMES}"),
        Kind.DISK,
        ["the disk is full"],
    ),
    "no JVM": (Py4JNetworkError("Answer from Java side is empty"), Kind.JVM, ["JVM is gone", "--restart"]),
    "no JVM any more": (ConnectionRefusedError(111, "Connection refused"), Kind.JVM, ["JVM is gone"]),
    "a refusal": (PenstockError("closed", hint="use another"), Kind.REFUSED, ["closed", "use another"]),
    "something else": (
        RuntimeError(f"{ABORTED}\nCaused by: java.lang.IllegalStateException: odd{FRAMES}"),
        Kind.OTHER,
        ["IllegalStateException: odd", "--verbose"],
    ),
    "nothing said": (RuntimeError(), Kind.OTHER, ["RuntimeError"]),
}


@pytest.mark.parametrize("name", CASES)
def test_one_message(name):
    error, kind, wanted = CASES[name]
    assert kind_of(error) is kind
    said = str(message_of(error, DOING))
    assert len(said.splitlines()) <= 6
    assert len(said) < 800
    assert all(word in said for word in wanted), said


def test_the_users_line_is_in_the_message():
    def inner(_batch):
        raise ValueError("no\nseven")

    def boom(batch):
        return inner(batch)

    node = Filter(name="f", inputs=("s",), function=function_of(boom))
    with pytest.raises(NetworkError, match="failed: no seven") as caught:
        call(node, node.function, None)
    line = inner.__code__.co_firstlineno + 1
    assert f"found:    ValueError at {__file__}:{line}" in str(caught.value)


def test_slices_in_a_few_words():
    parts = [ByteRange("in/a.csv", 0, 10, 20, 1)] * 5
    assert slices_text(Ticket(1, 0.0, {"cars": parts})).endswith("; and 2 more")
    assert "cars: in/a.csv (start 10, end 20" in slices_text(Ticket(1, 0.0, {"cars": parts}))


class Failing:
    """Stands for the trains of a sub-network: fails as it is told, then passes."""

    def __init__(self, *errors):
        self.errors, self.runs = list(errors), 0
        self.doing = ("win",)
        self.sub = type("Sub", (), {"name": "out"})
        self.log = type("Log", (), {"ticket": staticmethod(lambda _train: None)})

    def __call__(self, _train):
        self.runs += 1
        if self.errors:
            raise self.errors.pop(0)


LOST = RuntimeError("Python worker exited unexpectedly (crashed)")


def test_a_lost_worker_costs_an_attempt_not_the_run(caplog):
    trains = Failing(LOST, LOST)
    run_train(trains, 7, 3)
    assert trains.runs == 3
    assert "sub-network 'out', train 7, box 'win': a Python worker was killed" in caplog.text


def test_the_run_ends_after_the_last_attempt():
    trains = Failing(*[LOST] * 5)
    with pytest.raises(PenstockError, match="killed or crashed, 3 times"):
        run_train(trains, 7, 3)
    assert trains.runs == 3


def test_tuples_that_do_not_add_up_are_counted_again():
    trains = Failing(AccountError("tuples were lost or doubled"))
    run_train(trains, 7, 3)
    assert trains.runs == 2
    with pytest.raises(AccountError, match="lost or doubled"):
        run_train(Failing(*[AccountError("tuples were lost or doubled")] * 3), 7, 3)


def test_a_failing_function_is_not_run_again():
    trains = Failing(RuntimeError(PYTHON))
    with pytest.raises(PenstockError, match=r"net\.py:6"):
        run_train(trains, 7, 3)
    assert trains.runs == 1
