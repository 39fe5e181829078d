"""Network -> YAML text. Only what differs from a default is written, in the order in which one would say it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

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
from penstock.model.diffusion import Diffusion
from penstock.model.durations import format_duration
from penstock.model.error_location import located
from penstock.model.errors import ExpressionError
from penstock.model.formats.forms import (
    Callback,
    Console,
    Feed,
    Files,
    Memory,
    Rate,
    Rows,
    Sink,
    SourceFormat,
)
from penstock.model.qos import QoS
from penstock.model.user_functions import Function, name_of, needs_importable
from penstock.model.writing.network import Network

Form = dict[str, Any]


class _Flow(list[Any]):
    """A list that is written on one line."""


class _FlowMap(dict[str, Any]):
    """A mapping that is written on one line."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


_BOOL = "tag:yaml.org,2002:bool"
# YAML 1.2: only true and false are booleans, so that the key `on` of a join needs no quotes
_Dumper.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
    for first, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
}
_Dumper.add_implicit_resolver(_BOOL, re.compile("(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    # PyYAML writes the line ends of Unicode as they are and reads them back as blanks, unless they are escaped
    style = '"' if re.search("[\x85\u2028\u2029]", text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(
    _Flow, lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)
)
_Dumper.add_representer(
    _FlowMap, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)
)
_Dumper.add_representer(str, _text)


def network_text(network: Network) -> str:
    """The whole text."""
    form: Form = {"network": network.name}
    groups = {
        "/".join(path): _FlowMap(_about(about))
        for path, about in network.groups.items()
        if _about(about) or path not in _lived_in(network)
    }
    if groups:
        form["groups"] = groups
    form["boxes"] = {name: _node(node) for name, node in network.nodes.items()}
    # a line is never folded: expressions stay as they were written
    return yaml.dump(form, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))


def _lived_in(network: Network) -> set[tuple[str, ...]]:
    """Groups that their boxes name, with those around them; the others stand in the text by themselves."""
    paths = {node.about.group for node in network.nodes.values()}
    return {path[:depth] for path in paths for depth in range(1, len(path) + 1)}


def _node(node: Node) -> Form:
    with located(node.name, node.where, part="no text form"):
        form = _FORMS[type(node)](node)
    if node.inputs and not isinstance(node, Union | Join):
        head = next(iter(form))
        rest = {key: value for key, value in form.items() if key != head}
        form = {head: form[head], "from": _one_or_flow(node.inputs), **rest}
    if node.about.group:
        form["group"] = "/".join(node.about.group)
    return {**form, **_about(node.about)}


def _about(about: About) -> Form:
    return _given(tag=about.tag, description=about.description, manual=about.manual)


def _given(**parts: Any) -> Form:
    """Only those that say something."""
    return {key: value for key, value in parts.items() if value not in (None, "", (), [], {})}


def _one_or_flow(names: tuple[str, ...]) -> str | _Flow:
    return names[0] if len(names) == 1 else _Flow(names)


def _function(function: Function | None) -> str | None:
    if function is None:
        return None
    needs_importable(function.name)
    return function.name


def _source(node: Source) -> Form:
    form: Form = {"source": _format(node.format)}
    form |= _given(
        schema=node.schema.ddl() if node.schema != node.format.schema else "", timestamp=node.timestamp
    )
    if node.lateness:
        form["lateness"] = format_duration(node.lateness)
    if node.whole:
        form["whole"] = True
    if node.idle != 10_000_000:
        form["idle"] = "never" if node.idle is None else format_duration(node.idle)
    return form


def _format(given: SourceFormat | Sink) -> _FlowMap | Form:
    if isinstance(given, Files):
        schema = given.schema.ddl() if given.schema else ""
        made = {
            given.format: given.path,
            **_given(schema=schema, options=_FlowMap(given.options), stamp=_function(given.stamp)),
        }
        return made if schema else _FlowMap(made)
    if isinstance(given, Feed):
        form = {"feed": given.path, "schema": given.schema.ddl(), "decode": _function(given.decode)}
        return form | _given(keys=_one_or_flow(given.keys) if given.keys else None)
    if isinstance(given, Rate):
        return _FlowMap(rate=given.rows_per_second)
    if isinstance(given, Console):
        return _FlowMap(console=given.limit)
    if isinstance(given, Rows):
        if not callable(given.rows):
            raise ExpressionError("rows of this process cannot be written down", expected="rows from a function that can be imported", hint="ps.rows(make_rows, schema), with make_rows at the top of a module")  # fmt: skip
        return {"rows": _named(given.rows), "schema": given.schema.ddl()}
    if isinstance(given, Callback):
        return _FlowMap(callback=_named(given.function))
    assert isinstance(given, Memory)
    return _FlowMap(memory=_FlowMap())


def _named(call: Callable[..., Any]) -> str:
    name = name_of(call)
    needs_importable(name)
    return name


def _filter(node: Filter) -> Form:
    what: Any = node.predicate if node.function is None else _FlowMap(function=_function(node.function))
    return {"filter": what, **_given(reads=_Flow(node.reads))}


def _map(node: Map) -> Form:
    if node.function is not None:
        form = {
            "apply": _function(node.function),
            **_given(reads=_Flow(node.reads), produces=node.produces.ddl()),
        }
        return form if node.keep else {**form, "keep": False}
    return {"map" if node.keep else "select": dict(node.columns)}


def _drop(node: Drop) -> Form:
    return {"drop": node.rate, **_given(seed=node.seed or None)}


def _union(node: Union) -> Form:
    return {"union": _Flow(node.inputs)}


def _group_by(node: GroupBy) -> Form:
    return {"group_by": _one_or_flow(node.keys)}


def _window(node: Windowed) -> Form:
    form: Form = {node.kind: str(node.size)}
    if isinstance(node, Slide):
        form["every"] = str(node.every)
    return form | _computed(node)


def _computed(node: Windowed | Latch) -> Form:
    stamp = "" if node.stamp == "earliest" else node.stamp
    return _given(
        aggregates=dict(node.aggregates), reads=_Flow(node.reads), produces=node.produces.ddl(), stamp=stamp
    ) | (_given(function=_function(node.function)) if isinstance(node, Windowed) else {})


def _latch(node: Latch) -> Form:
    if node.function is not None:
        return {
            "latch": _FlowMap(function=_function(node.function)),
            **_given(state=node.state.ddl()),
            **_computed(node),
        }
    return {"latch": str(node.size), **_computed(node)}


def _column_latch(node: ColumnLatch) -> Form:
    return {"column_latch": _function(node.logic), "produces": node.produces.ddl()}


def _resample(node: Resample) -> Form:
    return {
        "resample": format_duration(node.every),
        "columns": _one_or_flow(node.columns),
        "limit": format_duration(node.limit),
    }


def _join(node: Join) -> Form:
    pairs = _Flow(a if a == b else _Flow((a, b)) for a, b in node.on)
    after, before = (format_duration(length) for length in node.within)
    suffix = "" if node.suffix == "_right" else node.suffix
    return {
        "join": _Flow(node.inputs),
        **_given(on=pairs),
        "within": after if after == before else _Flow((after, before)),
        **_given(where=node.predicate, suffix=suffix),
        **_spread(node),
    }


def _spread(node: Join) -> Form:
    """Only what differs from a join by hash."""
    options, plain = node.diffusion, Diffusion()
    form: Form = {"distribution": node.distribution} if node.distribution != "hash" else {}
    form |= _given(servers=node.servers)
    changed = {name: value for name, value in vars(options).items() if value != getattr(plain, name)}
    if "sample" in changed:
        changed["sample"] = format_duration(options.sample)
    return form | changed


def _point(node: ConnectionPoint) -> Form:
    return {"connection_point": format_duration(node.keep), **_given(key=node.key)}


def _view(node: View) -> Form:
    return {"view": format_duration(node.keep), **_given(qos=_qos(node.qos))}


def _output(node: Output) -> Form:
    return {"output": _format(node.to), **_given(qos=_qos(node.qos))}


def _qos(qos: QoS | None) -> Form | None:
    if qos is None:
        return None
    graphs = {
        name: _Flow(_Flow(point) for point in getattr(qos, name)) for name in ("delay", "loss", "value")
    }
    return _given(**graphs, column=qos.column) | ({} if qos.weight == 1.0 else {"weight": qos.weight})


_FORMS: Mapping[type[Node], Callable[[Any], Form]] = {
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
