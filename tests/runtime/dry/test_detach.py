"""What is detached leaves nothing behind."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.valve import Valve
from penstock.model.errors import PenstockError
from penstock.rewrite.forms import Form
from penstock.rewrite.subnetworks import at_point
from penstock.standing.serving.stream_feeds import StreamFeeds
from runtime.dry.standins import NoRecords, StandIn, chain


@pytest.fixture
def runtime(tmp_path):
    made = ps.Runtime(chain(), None, tmp_path)
    made.records = NoRecords()
    return made


def asked(runtime, name="q"):
    """A query at the point that is held and sheds."""
    sub = at_point(runtime.network, "p", name, lambda s: s, to=ps.memory())
    steering = Steering(AsSoonAsPossible(), held=True, valves=(Valve("p", 0.5),))
    runtime._steering[name] = steering
    query = runtime.queries[name] = StandIn(sub, steering)
    return query


def test_who_takes_the_name_of_a_held_query_is_not_held(runtime):
    query = asked(runtime)
    runtime.first_valves["q"] = query.steering.valves
    runtime.detach("q")
    assert query.done == ["drained", "stopped", "released"]
    assert "q" not in runtime._steering
    assert "q" not in runtime.first_valves
    runtime.set_train(length=5)  # of all that still run


def test_the_feeds_of_a_service_that_ends_leave_no_steering(runtime):
    asked(runtime, "standing-p")
    feeds = StreamFeeds(runtime, keep=1)
    feeds._feeds["p"] = "standing-p"
    feeds.stop()
    assert not runtime.queries
    assert not runtime._steering


def test_a_long_train_is_waited_for(runtime, caplog):
    """Its folder is deleted next, and its name becomes free."""
    query = asked(runtime)
    answers = [False, False, True]
    query.drain = lambda _timeout: query.done.append("waited") or answers.pop(0)
    runtime.detach("q")
    assert query.done == ["waited", "waited", "waited", "stopped", "released"]
    assert caplog.text.count("sub-network 'q': waiting for its train 0") == 2


def test_a_train_does_not_wait_for_its_own_end(runtime):
    """It would, for ever, and nobody else could change anything meanwhile."""
    query = asked(runtime)
    told = []

    def listener(done):
        for change in (lambda: runtime.detach("q"), lambda: runtime.rewrite("q", Form())):
            with pytest.raises(PenstockError, match="'q' cannot be ended or changed by what its own train"):
                change()
        told.append(done.subnetwork)

    runtime.on_train(listener)
    runtime._train_done(SimpleNamespace(subnetwork="q", again=False))
    assert (told, query.done) == (["q"], [])
    runtime.detach("q")  # from elsewhere
    assert "q" not in runtime.queries
