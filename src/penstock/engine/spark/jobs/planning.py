"""From a sub-network's layout to the phases of its job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.engine.spark.jobs.plan import JobPlan, Phase, Route
from penstock.engine.spark.layout.plan import Layout, Stage, StageInput, behind, mixes_numbers
from penstock.engine.spark.tasks.stage import StageTask
from penstock.model.boxes import Source
from penstock.model.types import arrow_schema
from penstock.model.writing.network import Network

if TYPE_CHECKING:
    from penstock.engine.spark.runs.train_run import TrainRun


def job_plan(run: TrainRun) -> JobPlan:
    """The job of a sub-network; `run`: any of its trains."""
    net, layout, sub = run.net, run.layout, run.trains.sub
    inputs = [net.nodes[name] for name in sub.inputs]
    levels = stage_levels(net, layout)
    phases = [_phase(run, levels, number) for number in range(1 + max(levels.values(), default=0))]
    return JobPlan(
        run.trains.partitions,
        tuple(phases),
        {node.name: node for node in inputs if isinstance(node, Source)},
        tuple(node.name for node in inputs if not isinstance(node, Source)),
        {name: arrow_schema(net.types[name].schema) for name in [*sub.inputs, *_boxes(net)]},
        layout.rooted,
    )


def _boxes(net: Network) -> list[str]:
    return [node.name for node in net.nodes.values() if node.is_box]


def stage_levels(net: Network, layout: Layout) -> dict[str, int]:
    """The phase of each stage: after all that it gets tuples from."""
    levels: dict[str, int] = {}
    waiting = list(layout.stages)
    while waiting:
        for stage in waiting:
            above = _stages_above(net, layout, stage)
            if above <= levels.keys():
                first = layout.rooted and stage.name in net.sources
                levels[stage.name] = 0 if first else 1 + max((levels[name] for name in above), default=0)
        # A join may stand before the stage that its second input comes from.
        later = [stage for stage in waiting if stage.name not in levels]
        assert len(later) < len(waiting), "stages in a circle"
        waiting = later
    return levels


def _stages_above(net: Network, layout: Layout, stage: Stage) -> set[str]:
    """The stages that a stage gets tuples from."""
    if layout.rooted and stage.name in net.sources:
        return set()
    return {name for entry in stage.entries for name in _origins(net, layout, entry.tail) if name is not None}


def _levels_of(net: Network, layout: Layout, name: str, levels: dict[str, int]) -> set[int]:
    """The phases in which tuples after a node come about."""
    return {0 if origin is None else levels[origin] for origin in _origins(net, layout, name)}


def _origins(net: Network, layout: Layout, name: str) -> set[str | None]:
    """The stages that tuples after a node come out of; None for the inputs of the sub-network."""
    origins: set[str | None] = set()
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        box = waiting.pop()
        if box in seen:
            continue
        seen.add(box)
        if box in layout.home:
            origins.add(layout.home[box].name)
        elif net.nodes[box].is_box:
            waiting += [behind(net, up) for up in net.nodes[box].inputs]
        else:
            origins.add(None)
    return origins


def _phase(run: TrainRun, levels: dict[str, int], number: int) -> Phase:
    net, layout = run.net, run.layout
    stages = [stage for stage in layout.stages if levels[stage.name] == number]
    native = [name for name in layout.native if number in _levels_of(net, layout, name, levels)]
    inputs = list(run.trains.sub.inputs) if number == 0 else []
    here = {*inputs, *native, *(name for stage in stages for name in stage.nodes)}
    routes = [
        Route(entry.tail, other.name, i, entry.keys, _by(net, layout, entry, other))
        for other in layout.stages
        for i, entry in enumerate(other.entries)
        if entry.tail in here and levels[other.name] > number
    ]
    return Phase(
        tuple(_stage(run, stage) for stage in stages),
        _stateless(run, number, native, inputs) if native or inputs else None,
        tuple(routes),
    )


def _stage(run: TrainRun, stage: Stage) -> StageTask:
    """A stage with tuples as they are: partial aggregates are made of DataFrames only."""
    fields = [arrow_schema(run.net.types[entry.tail].schema) for entry in stage.entries]
    task = run.stage_task(stage, [])
    return replace(_timeless(task), partials=frozenset(), entry_fields=fields, keyed=bool(stage.keys))


def _stateless(run: TrainRun, number: int, native: Sequence[str], inputs: Iterable[str]) -> StageTask:
    """The boxes without state that run in a phase, and what leaves after them or after an input."""
    task = run.stage_task(Stage(f"phase {number}", None, nodes=list(native)), [])
    leaving = [run.leaving(name) for name in inputs if run.trains.terminals(name)]
    return replace(_timeless(task), leaving=[*leaving, *task.leaving])


def _timeless(task: StageTask) -> StageTask:
    """The same without what changes from train to train."""
    return replace(
        task,
        train=-1,
        state_tokens={},
        state_root="",
        horizons={},
        drop_rates={},
        joins={},
        monitors={},
        final=False,
    )


def _by(net: Network, layout: Layout, entry: StageInput, stage: Stage) -> str:
    if layout.rooted and entry.keys:
        return "packed doubles" if mixes_numbers(net, stage) else "packed keys"
    if layout.rooted:
        return "one"
    if not stage.stateful:
        return "none"
    if not stage.entries[0].keys:
        return "one"
    return "keys" if len(stage.entries) == 1 else "common keys"
