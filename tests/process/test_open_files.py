"""The limit of open files is raised to what is needed, never lowered, as far as the system allows."""

from __future__ import annotations

import resource

import pytest

from penstock.process.open_files import allow_open_files


@pytest.fixture
def limit():
    """Tells the limit; after the test it is as before."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def lower(soft):
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def test_it_is_raised_and_never_lowered(limit):
    lower(512)
    allow_open_files(600)
    assert limit() == 600
    allow_open_files(100)
    assert limit() == 600


def test_not_beyond_what_the_system_allows(limit):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        pytest.skip("this system has no limit")
    allow_open_files(hard + 1)
    assert limit() == hard
