"""What the queries of a runtime know of each other, while others come, fail and go."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.model.errors import PenstockError
from runtime.dry.standins import NoRecords, StandIn, chain, subs_of


@pytest.fixture
def runtime(tmp_path):
    made = ps.Runtime(chain(), None, tmp_path)
    made.records = NoRecords()
    return made


def test_a_writer_that_failed_has_not_finished(runtime):
    """Else its readers would close their windows, and never take what it still has."""
    subs = subs_of(runtime.network)
    up = runtime.queries["p"] = StandIn(subs["p"])
    assert not runtime._upstream_done(subs["out"])
    up.finished.set()
    assert runtime._upstream_done(subs["out"])
    up.failure = OSError("the disk is broken")
    assert not runtime._upstream_done(subs["out"])


class Growing(StandIn):
    """While somebody looks at it, another query is attached: in production by another thread."""

    @property
    def sub(self):
        self.queries[f"attached {len(self.queries)}"] = StandIn(self.real)
        return self.real

    @sub.setter
    def sub(self, real):
        self.real = real

    def drained(self):
        return self.sub is not None


def growing(runtime):
    sub = subs_of(runtime.network)["p"]
    for name in ("p", "q"):
        runtime.queries[name] = query = Growing(sub, queries=runtime.queries)
        query.finished.set()


def test_looking_at_all_queries_while_one_is_attached(runtime):
    growing(runtime)
    runtime._upstream_done(subs_of(runtime.network)["out"])
    assert not runtime.wait(timeout=0.1), "those that came have not finished"
    with pytest.raises(PenstockError, match="no drop box 'shed'"):
        runtime.set_drop_rate("shed", 0.5)
