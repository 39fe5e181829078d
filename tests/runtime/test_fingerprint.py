"""A user's code as a hash: what must change it, and what must not."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import pytest

from penstock.runtime.fingerprint import fingerprint


def plain(batch):
    """Says one thing."""
    return batch["bid"]


def same_but_for_words(batch):
    """Says another thing."""
    # and has a comment
    return batch["bid"]


def other_column(batch):
    """Says one thing."""
    return batch["ask"]


def with_inner(batch):
    return sorted(batch, key=lambda x: x * 2)


def with_other_inner(batch):
    return sorted(batch, key=lambda x: x * 3)


def with_default(batch, limit=5):
    return batch[:limit]


def with_other_default(batch, limit=6):
    return batch[:limit]


def capturing(limit):
    return lambda batch: batch[:limit]


class Counting:
    top = 10

    def process(self, batch):
        return len(batch)


class CountingOther:
    top = 10

    def process(self, batch):
        return len(batch) + 1


class CountingMore(Counting):
    top = 11


class Called:
    def __init__(self, limit):
        self.limit = limit

    def __call__(self, batch):
        return batch[: self.limit]


def test_words_do_not_count():
    assert fingerprint(plain) == fingerprint(same_but_for_words)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (plain, other_column),
        (with_inner, with_other_inner),
        (with_default, with_other_default),
        (capturing(5), capturing(6)),
        (functools.partial(with_default, limit=5), functools.partial(with_default, limit=6)),
        (Counting, CountingOther),
        (Counting, CountingMore),
        (Called(5), Called(6)),
        (Counting().process, CountingOther().process),
        (len, sum),
    ],
)
def test_other_code(one, other):
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one)


def test_the_same_in_every_process():
    """Sets of texts have another order in each process; the hash must not."""
    script = (
        "from penstock.runtime.fingerprint import fingerprint\n"
        "print(fingerprint(lambda b: b in {'one', 'two', 'three', 'four', 'five'}))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1
