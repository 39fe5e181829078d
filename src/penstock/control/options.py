"""The control of a run, from its options and from what the network's text says (`control:`)."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from penstock.control.control import Control
from penstock.control.loop.deployment import must_be_possible
from penstock.control.optimizer.cycle import Optimizer
from penstock.model.control_settings import ControlSettings, Scheme
from penstock.model.errors import PenstockError
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import split


def control_for(
    network: Network,
    qos: bool,
    headroom: float | None = None,
    priority: str | None = None,
    *,
    shed: bool = True,
    observe: bool = False,
    optimize: bool = False,
) -> Control | Optimizer | None:
    """The control that these options ask for; None without `--qos` and without `control:` in the network.

    An option counts before the network's text. `--optimize` needs no QoS.
    """
    if not qos and network.control is None:
        _only_with_qos({"--headroom": headroom, "--priority": priority}, shed=shed, observe=observe)
        return Optimizer() if optimize else None
    return control_of(network, headroom, priority, shed=shed, observe=observe, optimize=optimize)


def control_of(
    network: Network,
    headroom: float | None = None,
    priority: str | None = None,
    *,
    shed: bool = True,
    observe: bool = False,
    optimize: bool = False,
) -> Control:
    """A control with these options, and with what the network says about the others."""
    settings = network.control or ControlSettings()
    if headroom is not None:
        settings = replace(settings, headroom=headroom)
    if priority is not None:
        settings = replace(settings, priority=cast("Scheme", priority))
    settings = replace(
        settings,
        shed=settings.shed and shed,
        observe=settings.observe or observe,
        optimize=settings.optimize or optimize,
    )
    if not settings.observe:
        must_be_possible(split(network), {})  # before Spark starts; what trains took is looked at later
    return Control.of(settings)


def _only_with_qos(options: dict[str, object], *, shed: bool, observe: bool) -> None:
    given = [name for name, value in options.items() if value is not None]
    given += ["--no-shed"] if not shed else []
    given += ["--observe"] if observe else []
    if given:
        raise PenstockError(f"{given[0]} has no effect without --qos", hint="add --qos")
