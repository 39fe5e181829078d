"""The control of a run, from its options and from what the network's text says (`control:`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.control.control import Control
from penstock.control.loop.deployment import must_be_possible
from penstock.control.optimizer.cycle import Optimizer
from penstock.control.valve_places import check_grains
from penstock.model.control_settings import ControlSettings
from penstock.model.errors import PenstockError
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import split


def control_for(
    network: Network,
    qos: bool,
    headroom: float | None = None,
    priority: str | None = None,
    *,
    shed: bool | None = None,
    observe: bool | None = None,
    optimize: bool | None = None,
) -> Control | Optimizer | None:
    """The control that these options ask for; None without `--qos` and without `control:` in the network.

    An option that is given counts before the network's text. `--optimize` needs no QoS.
    """
    if not qos and network.control is None:
        _only_with_qos(
            {
                "--headroom": headroom is not None,
                "--priority": priority is not None,
                "--shed": shed is True,
                "--no-shed": shed is False,
                "--observe": observe is True,
                "--no-observe": observe is False,
            }
        )
        return Optimizer() if optimize else None
    return control_of(network, headroom, priority, shed=shed, observe=observe, optimize=optimize)


def control_of(
    network: Network,
    headroom: float | None = None,
    priority: str | None = None,
    *,
    shed: bool | None = None,
    observe: bool | None = None,
    optimize: bool | None = None,
) -> Control:
    """A control with these options, and with what the network says about the others."""
    options: dict[str, Any] = {
        "headroom": headroom,
        "priority": priority,
        "shed": shed,
        "observe": observe,
        "optimize": optimize,
    }
    given = {name: value for name, value in options.items() if value is not None}
    settings = replace(network.control or ControlSettings(), **given)
    if settings.shed:
        check_grains(network)
    if not settings.observe:
        must_be_possible(split(network), {})  # before Spark starts; what trains took is looked at later
    return Control.of(settings)


def _only_with_qos(options: dict[str, bool]) -> None:
    given = next((name for name, is_given in options.items() if is_given), None)
    if given is not None:
        raise PenstockError(f"{given} has no effect without --qos", hint="add --qos")
