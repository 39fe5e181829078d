"""`--optimize` with and without `--qos`, and `control: {optimize: true}` of a network."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.control.control import Control
from penstock.control.optimizer.cycle import Optimizer
from penstock.control.options import control_for
from penstock.model.errors import PenstockError
from penstock.testing import collect, rows_source


def network():
    net = ps.Network("n")
    net.source("cars", rows_source("v INT")).output("out", to=collect())
    return net


def test_off_by_default():
    assert control_for(network(), qos=False) is None
    assert not control_for(network(), qos=True).settings.optimize


def test_works_without_qos():
    optimizer = control_for(network(), qos=False, optimize=True)
    assert isinstance(optimizer, Optimizer)
    with pytest.raises(PenstockError, match="no QoS control"):
        optimizer.qos()


def test_works_under_control():
    control = control_for(network(), qos=True, optimize=True)
    assert isinstance(control, Control)
    assert control.settings.optimize
    assert isinstance(control._optimizer, Optimizer)


def test_who_only_observes_changes_nothing():
    assert Control(optimize=True, observe=True)._optimizer is None
