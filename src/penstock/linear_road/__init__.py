"""Linear Road: the benchmark as a network, and its kit (traffic, history, driver, validator) for any engine.

These names are what a user needs. Each is imported when it is first used: the kit's tools need no engine.

Inputs:
    generate_traffic(out, xways=L): the traffic of L expressways, in order of time
    generate_history(HistoryPlan(source, out)): TollHistory and SegmentHistory for the vehicles of an input
    describe_input(path): counts, rates, speeds, accidents and broken rows of an input
    drive_input(DrivePlan(source, to=...)): deliver every tuple at its time, to any system

Penstock's answers:
    road_network(...), road_runtime(...), warm_up(...): the network, its runtime on Spark, a warm session
    run_input(RunPlan(source, out)): driver and network together, from an input to answers and run.json
    rate_machine(RatePlan(out)): the largest L that this machine answers in time
    run_demo(Demo(out)): all of it on a small city

Anybody's answers:
    validate_answers(input, answers=...): an independent oracle's verdict on every answer
    compare_results(a, b): two ratings or two runs side by side

Everything that these refuse is a LinearRoadError. Arasu et al., "Linear Road", VLDB 2004.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.linear_road.demo import Demo, run_demo
    from penstock.linear_road.describe.describe import describe as describe_input
    from penstock.linear_road.drive.driver import DrivePlan
    from penstock.linear_road.drive.driver import drive as drive_input
    from penstock.linear_road.errors import InputError, LinearRoadError
    from penstock.linear_road.network.road import road_network
    from penstock.linear_road.network.start import road_runtime, warm_up
    from penstock.linear_road.rate.plan import RatePlan
    from penstock.linear_road.rate.rating import rate as rate_machine
    from penstock.linear_road.report.compare import compare as compare_results
    from penstock.linear_road.run.plan import RunPlan
    from penstock.linear_road.run.runner import run as run_input
    from penstock.linear_road.traffic.generate import generate as generate_traffic
    from penstock.linear_road.traffic.history import HistoryPlan
    from penstock.linear_road.traffic.history import history as generate_history
    from penstock.linear_road.validate.report import Verdict
    from penstock.linear_road.validate.validation import validate as validate_answers

_HOMES = {
    "Demo": "demo:Demo",
    "DrivePlan": "drive.driver:DrivePlan",
    "HistoryPlan": "traffic.history:HistoryPlan",
    "InputError": "errors:InputError",
    "LinearRoadError": "errors:LinearRoadError",
    "RatePlan": "rate.plan:RatePlan",
    "RunPlan": "run.plan:RunPlan",
    "Verdict": "validate.report:Verdict",
    "compare_results": "report.compare:compare",
    "describe_input": "describe.describe:describe",
    "drive_input": "drive.driver:drive",
    "generate_history": "traffic.history:history",
    "generate_traffic": "traffic.generate:generate",
    "rate_machine": "rate.rating:rate",
    "road_network": "network.road:road_network",
    "road_runtime": "network.start:road_runtime",
    "run_demo": "demo:run_demo",
    "run_input": "run.runner:run",
    "validate_answers": "validate.validation:validate",
    "warm_up": "network.start:warm_up",
}
"""Name -> module and what it is called there.

No name is that of a folder: `linear_road.run` stays a package.
"""

__all__ = [
    "Demo",
    "DrivePlan",
    "HistoryPlan",
    "InputError",
    "LinearRoadError",
    "RatePlan",
    "RunPlan",
    "Verdict",
    "compare_results",
    "describe_input",
    "drive_input",
    "generate_history",
    "generate_traffic",
    "rate_machine",
    "road_network",
    "road_runtime",
    "run_demo",
    "run_input",
    "validate_answers",
    "warm_up",
]


def __getattr__(name: str) -> object:
    """Import a name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock.linear_road' has no attribute '{name}'")
    module, _, attribute = _HOMES[name].partition(":")
    value: object = getattr(import_module(f"penstock.linear_road.{module}"), attribute)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
