"""Rows of an iterable under a shortage of descriptors: what it has given is not lost."""

from __future__ import annotations

import errno
import math

import pytest

from connectors.test_inputs import TEXT, source
from penstock.connectors import rows as module
from penstock.connectors.loading import input_for
from penstock.model.formats.rows import rows


def short(*_args, **_more):
    raise OSError(errno.EMFILE, "too many open files")


def patient(src, folder):
    """Its input; on a busy machine too, it gives as many rows as are asked for."""
    given = input_for(src, folder / "p")
    given.patience = math.inf
    return given


def values(taken, src):
    return [row["v"] for piece in taken.slices for row in piece.tuples(src).tuples.to_pylist()]


def test_rows_that_could_not_be_spooled_come_later(tmp_path, monkeypatch):
    src = source(rows(({"time": n, "k": "a", "v": n} for n in range(5)), TEXT))
    given = patient(src, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_bytes", short)
        with pytest.raises(OSError, match="too many"):
            given.take(None, 3)
    first = given.take(None, 2)
    rest = given.take(first.position, 10)
    assert (values(first, src), values(rest, src)) == ([0, 1], [2, 3, 4])


def test_a_generator_that_ran_short_is_not_taken_for_ended(tmp_path):
    """It cannot go on. Waited out, the run would end well without the rest."""

    def numbers():
        yield {"time": 0, "k": "a", "v": 0}
        short()

    given = patient(source(rows(numbers(), TEXT)), tmp_path)
    with pytest.raises(RuntimeError, match="the rows of source 'cars' failed"):
        given.take(None, 10)


def test_a_function_that_cannot_begin_is_asked_again(tmp_path):
    asked = []

    def numbers():
        asked.append(len(asked))
        if len(asked) == 1:
            short()
        return [{"time": n, "k": "a", "v": n} for n in range(3)]

    src = source(rows(numbers, TEXT))
    given = patient(src, tmp_path)
    with pytest.raises(OSError, match="too many"):
        given.take(None, 10)
    assert values(given.take(None, 10), src) == [0, 1, 2]
