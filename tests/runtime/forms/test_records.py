"""What a checkpoint keeps about forms, without a run."""

from __future__ import annotations

import pytest

from penstock.model.errors import NetworkError
from penstock.model.writing.network import Network
from penstock.rewrite.forms import Form
from penstock.rewrite.settling import stateful
from penstock.rewrite.subnetworks import split
from penstock.runtime.forms import Forms, forms_texts
from penstock.testing import collect, rows_source


def written(predicate="k = 1", name="first", between="n >= 0"):
    net = Network("n")
    cars = net.source("cars", rows_source("time TIMESTAMP, k INT, v INT"), timestamp="time")
    windows = cars.group_by("k", name="by_k").tumble("1 minute", n="count(*)", name="minutes")
    windows.filter(between, name="between").filter(predicate, name=name).output("out", to=collect())
    (sub,) = split(net)
    return sub


@pytest.fixture
def forms(tmp_path):
    forms = Forms(tmp_path)
    sub = written()
    forms.keep(sub, Form(rewritten=True, in_use=stateful(sub.network)))
    return forms


def test_the_form_returns(tmp_path, forms):
    del forms  # kept it
    sub = written()
    running = Forms(tmp_path).running(sub)
    assert running.written is sub.network
    assert [*running.network.nodes] != [*sub.network.nodes]
    (text,) = forms_texts([written()], Forms(tmp_path))
    assert text.startswith("sub-network 'out' runs in another form:")


@pytest.mark.parametrize(
    "other", [{"predicate": "k >= 1"}, {"name": "renamed"}, {"between": "n >= 1"}], ids=str
)
def test_another_way_to_the_filter_is_refused(forms, other):
    with pytest.raises(NetworkError, match="its state lacks what filter 'first' behind it removes"):
        forms.running(written(**other))


def test_undone_the_state_still_lacks_it(forms):
    forms.keep(written(), Form())
    sub = written()
    assert forms.running(sub) is sub
    with pytest.raises(NetworkError, match="its state lacks"):
        forms.running(written(predicate="k >= 1"))


def test_fresh_state_lacks_nothing(forms):
    forms.forget("out")
    assert forms.running(written(predicate="k >= 1")).written is None


def test_what_a_new_box_never_saw_is_noted_when_it_starts(tmp_path):
    """A network that got a window later: the form in which it starts keeps tuples out of that one too."""
    forms = Forms(tmp_path)
    forms.keep(written(), Form(rewritten=True))  # no box is in use
    assert forms.begin(written()).written is not None
    with pytest.raises(NetworkError, match="its state lacks"):
        forms.running(written(predicate="k = 2"))
