"""Network -> YAML text.

Only what differs from a default is written, in the order in which one would say it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Never, cast

import yaml

from penstock.model.boxes import (
    About,
    ColumnLatch,
    ConnectionPoint,
    Drop,
    Filter,
    GroupBy,
    Join,
    Latch,
    Map,
    Node,
    Output,
    Resample,
    Slide,
    Source,
    Tumble,
    Union,
    View,
    Windowed,
)
from penstock.model.control_settings import ControlSettings
from penstock.model.durations import format_duration
from penstock.model.error_location import located
from penstock.model.errors import NetworkError
from penstock.model.join_distribution import Diffusion
from penstock.model.qos import QoS
from penstock.model.text.yaml_format import format_form, function_text
from penstock.model.text.yaml_style import Dumper, Form, OneLineList, OneLineMap, given, one_or_list
from penstock.model.writing.network import Network


def network_text(network: Network) -> str:
    """The whole text."""
    form: Form = {"network": network.name}
    if network.control is not None:
        form["control"] = OneLineMap(_control(network.control))
    groups = {
        "/".join(path): OneLineMap(_about(about))
        for path, about in network.groups.items()
        if _about(about) or path not in _lived_in(network)
    }
    if groups:
        form["groups"] = groups
    form["boxes"] = {name: _node(node) for name, node in network.nodes.items()}
    # a line is never folded: expressions stay as they were written
    return yaml.dump(form, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))


def _control(settings: ControlSettings) -> Form:
    """Headroom and priority always, the rest where it differs from a default."""
    plain, first = vars(ControlSettings()), ("headroom", "priority")
    return {name: value for name, value in vars(settings).items() if name in first or value != plain[name]}


def _lived_in(network: Network) -> set[tuple[str, ...]]:
    """Groups that their boxes name, with those around them; the others stand in the text by themselves."""
    paths = {node.about.group for node in network.nodes.values()}
    return {path[:depth] for path in paths for depth in range(1, len(path) + 1)}


def _node(node: Node) -> Form:
    with located(node.name, node.where, part="no text form"):
        if type(node) not in _FORMS:
            raise NetworkError(f"a {node.kind} has no text form", box=node.name, where=node.where)
        form = cast("Callable[[Node], Form]", _FORMS[type(node)])(node)
    if node.inputs and not isinstance(node, Union | Join):
        head = next(iter(form))
        rest = {key: value for key, value in form.items() if key != head}
        form = {head: form[head], "from": one_or_list(node.inputs), **rest}
    if node.shed_by or getattr(node, "shed", False):
        form["shed"] = node.shed_by or True
    if node.about.group:
        form["group"] = "/".join(node.about.group)
    return {**form, **_about(node.about)}


def _about(about: About) -> Form:
    return given(tag=about.tag, description=about.description, manual=about.manual)


def _source(node: Source) -> Form:
    form: Form = {"source": format_form(node.format)}
    form |= given(
        schema=node.schema.ddl() if node.schema != node.format.schema else "", timestamp=node.timestamp
    )
    if node.lateness:
        form["lateness"] = format_duration(node.lateness)
    if node.whole:
        form["whole"] = True
    if node.idle != 10_000_000:
        form["idle"] = "never" if node.idle is None else format_duration(node.idle)
    if node.stays is not None:
        form["stays"] = node.stays
    return form


def _filter(node: Filter) -> Form:
    function = function_text(node.function)
    what = node.predicate if function is None else OneLineMap(function=function)
    return {"filter": what, **given(reads=OneLineList(node.reads)), **_rowwise(node)}


def _rowwise(node: Filter | Map) -> Form:
    return {"rowwise": True} if node.rowwise else {}


def _map(node: Map) -> Form:
    if node.function is not None:
        form = {
            "apply": function_text(node.function),
            **given(reads=OneLineList(node.reads), produces=node.produces.ddl()),
            **_rowwise(node),
        }
        return form if node.keep else {**form, "keep": False}
    return {"map" if node.keep else "select": dict(node.columns)}


def _drop(node: Drop) -> Form:
    return {"drop": node.rate, **given(seed=node.seed or None)}


def _union(node: Union) -> Form:
    return {"union": OneLineList(node.inputs)}


def _group_by(node: GroupBy) -> Form:
    return {"group_by": one_or_list(node.keys)}


def _window(node: Windowed) -> Form:
    form: Form = {node.kind: str(node.size)}
    if isinstance(node, Slide):
        form["every"] = str(node.every)
    return form | _computed(node)


def _computed(node: Windowed | Latch) -> Form:
    stamp = "" if node.stamp == "earliest" else node.stamp
    return given(
        aggregates=dict(node.aggregates),
        reads=OneLineList(node.reads),
        produces=node.produces.ddl(),
        stamp=stamp,
    ) | (given(function=function_text(node.function)) if isinstance(node, Windowed) else {})


def _latch(node: Latch) -> Form:
    if node.function is not None:
        return {
            "latch": OneLineMap(function=function_text(node.function)),
            **given(state=node.state.ddl()),
            **_computed(node),
        }
    return {"latch": str(node.size), **_computed(node)}


def _column_latch(node: ColumnLatch) -> Form:
    return {"column_latch": function_text(node.logic), "produces": node.produces.ddl()}


def _resample(node: Resample) -> Form:
    return {
        "resample": format_duration(node.every),
        "columns": one_or_list(node.columns),
        "limit": format_duration(node.limit),
    }


def _join(node: Join) -> Form:
    pairs = OneLineList(a if a == b else OneLineList((a, b)) for a, b in node.on)
    after, before = (format_duration(length) for length in node.within)
    suffix = "" if node.suffix == "_right" else node.suffix
    return {
        "join": OneLineList(node.inputs),
        **given(on=pairs),
        "within": after if after == before else OneLineList((after, before)),
        **given(where=node.predicate, suffix=suffix),
        **_spread(node),
    }


def _spread(node: Join) -> Form:
    """Only what differs from a join by hash."""
    options, plain = node.diffusion, Diffusion()
    form: Form = {"distribution": node.distribution} if node.distribution != "hash" else {}
    form |= given(servers=node.servers)
    changed = {name: value for name, value in vars(options).items() if value != getattr(plain, name)}
    if "sample" in changed:
        changed["sample"] = format_duration(options.sample)
    return form | changed


def _point(node: ConnectionPoint) -> Form:
    return {"connection_point": format_duration(node.keep), **given(key=node.key)}


def _view(node: View) -> Form:
    return {"view": format_duration(node.keep), **given(qos=_qos(node.qos))}


def _output(node: Output) -> Form:
    return {"output": format_form(node.to), **given(qos=_qos(node.qos))}


def _qos(qos: QoS | None) -> Form | None:
    if qos is None:
        return None
    graphs = {
        name: OneLineList(OneLineList(point) for point in getattr(qos, name))
        for name in ("delay", "loss", "value")
    }
    form = given(**graphs, column=qos.column) | ({} if qos.weight == 1.0 else {"weight": qos.weight})
    return form | ({"approximate": True} if qos.approximate else {})


# Each function takes the class of its line.
_FORMS: Mapping[type[Node], Callable[[Never], Form]] = {
    Source: _source,
    Filter: _filter,
    Map: _map,
    Drop: _drop,
    Union: _union,
    GroupBy: _group_by,
    Tumble: _window,
    Slide: _window,
    Latch: _latch,
    ColumnLatch: _column_latch,
    Resample: _resample,
    Join: _join,
    ConnectionPoint: _point,
    View: _view,
    Output: _output,
}
