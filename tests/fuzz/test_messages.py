"""Whatever fails, the user gets one short message: what, where, what to do; never a trace or an escape."""

from __future__ import annotations

import errno
import json
import random
import sqlite3

import pytest
import typer
from typer.testing import CliRunner

from penstock.cli.refusals import refusals
from penstock.engine.spark.trains.failures import Doing, Kind, kind_of, message_of
from penstock.model.errors import NetworkError, PenstockError, Where
from soak import count

HOSTILE = ["\x1b[2J", "\x07", "\n" * 50, "'", '"', "{}", "%s", "\\", "é", "\u202e", "\0", "x" * 5000, "\r\n"]


def noise(dice, words=6):
    return "".join(
        dice.choice([*HOSTILE, "seven", " ", "Error: ", "at "]) for _ in range(dice.randint(0, words))
    )


def java_trace(dice, cause):
    frames = [f"\tat org.apache.spark.Some.call{n}(Some.scala:{n})" for n in range(dice.randint(5, 300))]
    split = dice.randint(0, len(frames))
    head = (
        "An error occurred while calling o1.collectToPython.\n: org.apache.spark.SparkException: Job aborted"
    )
    return "\n".join([head, *frames[:split], f"Caused by: {cause}", *frames[split:]])


def python_trace(dice, error):
    frames = [f'  File "stage.py", line {n}, in run\n    self.run()' for n in range(dice.randint(1, 40))]
    return "\n".join(["An exception was thrown:", "Traceback (most recent call last):", *frames, error])


def failure(dice):
    """A failure of some kind, as the driver sees it, and its kind."""
    function = NetworkError(
        "function net:f failed: no seven",
        box="win",
        where=Where("net.py", 8),
        found="ValueError at net.py:3",
        hint="cope with it",
    )
    cases = [
        (RuntimeError(python_trace(dice, f"penstock.model.errors.NetworkError: {function}")), Kind.FUNCTION),
        (
            RuntimeError(java_trace(dice, "SparkException: Python worker exited unexpectedly (crashed)")),
            Kind.WORKER,
        ),
        (RuntimeError(java_trace(dice, "ExecutorLostFailure (executor 2 exited)")), Kind.EXECUTOR),
        (RuntimeError(java_trace(dice, "java.lang.OutOfMemoryError: Java heap space")), Kind.MEMORY),
        (RuntimeError(java_trace(dice, "java.io.IOException: No space left on device")), Kind.DISK),
        (OSError(errno.ENOSPC, "No space left on device", "ck/state/1"), Kind.DISK),
        (ConnectionRefusedError(111, "Connection refused"), Kind.JVM),
        (RuntimeError(java_trace(dice, f"java.lang.IllegalStateException: {noise(dice)}")), Kind.OTHER),
        (ValueError(noise(dice)), Kind.OTHER),
    ]
    return dice.choice(cases)


def test_a_failed_train_is_one_message(record_property):
    dice, many = random.Random("trains"), count(300, soak=20_000)
    for _ in range(many):
        error, kind = failure(dice)
        assert kind_of(error) is kind, error
        said = str(message_of(error, Doing("out", 7, ("win",), "cars: in/a.csv (start 0, end 9)"), 3))
        assert len(said.splitlines()) <= 6, said
        assert len(said) < 1200
        assert "'win'" in said
        assert "in/a.csv" in said
        assert "hint:" in said
        assert "\tat " not in said
    record_property("failures_told_in_one_message", many)


def raised(dice):
    """Anything that a command may run into."""
    text = noise(dice)
    return dice.choice(
        [
            PenstockError(f"no {text[:300]}", hint="look"),
            OSError(errno.ENOSPC, "No space left on device"),
            OSError(errno.EACCES, "Permission denied", f"in/{text[:40]}"),
            sqlite3.DatabaseError("file is not a database"),
            json.JSONDecodeError("Expecting value", "{", 1),
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
            KeyError(text),
            RecursionError(),
            RuntimeError(text),
        ]
    )


def test_a_command_refuses_in_one_message(record_property):
    dice, many = random.Random("commands"), count(300, soak=5_000)
    for _ in range(many):
        error = raised(dice)
        app = typer.Typer()

        @app.command()
        def fail(error=error) -> None:
            with refusals():
                raise error

        result = CliRunner().invoke(app, [])
        assert result.exit_code in (1, 2), (error, result.exception)
        said = result.stderr
        assert said.strip(), error
        assert len(said.splitlines()) <= 6 or isinstance(error, PenstockError), said
        assert "Traceback" not in said
        assert not set(said) & {"\x1b", "\x07", "\0", "\r", "\u202e"}
    record_property("refusals_in_one_message", many)


def test_exits_of_typer_pass_through():
    with pytest.raises(typer.Exit) as caught, refusals():
        raise typer.Exit(3)
    assert caught.value.exit_code == 3
