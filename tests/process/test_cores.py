"""Plans are made with the cores that a process may use, not with those of the machine."""

from __future__ import annotations

import math
import os
from pathlib import PurePosixPath

import pytest

from penstock.process.cores import quota, usable_cores


def group(folder, name, text):
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "cpu.max").write_text(text)


def test_a_mask_counts():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(
    ("text", "cores"),
    [("150000 100000\n", 1.5), ("max 100000\n", math.inf), ("", math.inf), ("a b\n", math.inf)],
)
def test_the_quota_of_a_container_is_read(tmp_path, text, cores):
    group(tmp_path, ".", text)
    assert quota(tmp_path, PurePosixPath("/")) == cores


def test_the_least_quota_of_all_groups_around_counts(tmp_path):
    group(tmp_path, "a", "200000 100000")
    group(tmp_path, "a/b", "800000 100000")
    assert quota(tmp_path, PurePosixPath("/a/b")) == 2
    assert quota(tmp_path, PurePosixPath("/a/b/not/there")) == 2
    assert quota(tmp_path, PurePosixPath("/other")) == math.inf
