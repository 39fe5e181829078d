"""YAML text -> Network.

Each value is read with its line (yaml.compose), so that errors name file and line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypedDict, TypeVar, cast

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
)
from penstock.model.control_settings import ControlSettings, Scheme
from penstock.model.durations import Extent, parse_duration, parse_extent
from penstock.model.errors import NetworkError, Where, did_you_mean
from penstock.model.join_distribution import Diffusion
from penstock.model.qos import QoS
from penstock.model.text.yaml_format import read_function, read_pairs, read_schema, read_sink, read_source
from penstock.model.text.yaml_value import YamlValue
from penstock.model.types import Schema
from penstock.model.user_functions import Function
from penstock.model.writing.network import Network

_ABOUT = ("tag", "description", "manual")
T = TypeVar("T")
D = TypeVar("D")
Pairs = tuple[tuple[str, str], ...]


class CommonFields(TypedDict):
    """What every box has."""

    name: str
    inputs: tuple[str, ...]
    where: Where
    about: About
    shed_by: str


class ComputedFields(TypedDict):
    """How a box that keeps tuples computes its rows."""

    aggregates: Pairs
    reads: tuple[str, ...]
    produces: Schema
    stamp: str


def read_network(text: str, file: str) -> Network:
    """The network of a text; `file` stands in the errors."""
    root = YamlValue(_compose(text, file), file)
    entries = root.mapping()
    root.only(entries, ("network", "control", "groups", "boxes"))
    for key in ("network", "boxes"):
        if key not in entries:
            raise root.wrong(f"no '{key}'", expected="network: a name, boxes: the boxes by name")
    nodes = [
        _node(name, entry, where)
        for (name, entry), where in zip(
            entries["boxes"].mapping().items(), entries["boxes"].keys_at().values(), strict=True
        )
    ]
    groups = _groups(entries["groups"]) if "groups" in entries else {}
    control = _control(entries["control"]) if "control" in entries else None
    return Network.of(entries["network"].text(), nodes, groups=groups, control=control)


def _control(entry: YamlValue) -> ControlSettings:
    items, plain = entry.mapping(), ControlSettings()
    entry.only(items, vars(plain))
    flags = {name: items[name].flag() for name in ("shed", "optimize", "observe") if name in items}
    with entry.located():
        return ControlSettings(
            items["headroom"].number() if "headroom" in items else plain.headroom,
            cast("Scheme", items["priority"].text() if "priority" in items else plain.priority),
            **flags,
        )


def read_boxes(text: str, file: str) -> list[Node]:
    """Boxes by name without a network around them; one without `from` has no inputs yet."""
    boxes = YamlValue(_compose(text, file), file)
    entries = boxes.mapping()
    places = boxes.keys_at().values()
    return [_node(name, entry, where) for (name, entry), where in zip(entries.items(), places, strict=True)]


def _compose(text: str, file: str) -> yaml.Node:
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except RecursionError:
        raise NetworkError(
            "the text is nested too deeply",
            where=Where(file, 1),
            expected="boxes by name, and a few levels below them",
        ) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise NetworkError(
            "not YAML", where=Where(file, line), found=str(error.problem or error.context)
        ) from None
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise NetworkError(
            "not YAML",
            where=Where(file, line),
            found=f"the character #{error.character:x}",
            expected="text",
            hint="is it a YAML file?",
        ) from None
    if node is None:
        raise NetworkError(
            "an empty text", where=Where(file, 1), expected="network: a name, boxes: the boxes by name"
        )
    return node


def _groups(entry: YamlValue) -> dict[tuple[str, ...], About]:
    groups: dict[tuple[str, ...], About] = {}
    for name, group in entry.mapping().items():
        parts = group.mapping()
        group.only(parts, _ABOUT)
        path = tuple(name.split("/"))
        groups[path] = About(**{key: value.text() for key, value in parts.items()}, group=path[:-1])
    return groups


@dataclass(frozen=True)
class Parts:
    """The keys of one box; the first of them is its kind."""

    entry: YamlValue
    where: Where
    kind: str
    items: dict[str, YamlValue]

    @property
    def main(self) -> YamlValue:
        return self.items[self.kind]

    def common(self) -> CommonFields:
        inputs = self.main.texts() if self.kind in _NAMES_INPUTS else self.get("from", YamlValue.texts, ())
        return {
            "name": self.entry.box,
            "inputs": inputs,
            "where": self.where,
            "about": _about(self),
            "shed_by": "" if self.kind in _NO_BOXES else self.get("shed", YamlValue.text, ""),
        }

    def get(self, key: str, read: Callable[[YamlValue], T], default: D) -> T | D:
        return read(self.items[key]) if key in self.items else default

    def need(self, key: str, read: Callable[[YamlValue], T]) -> T:
        if key not in self.items:
            raise self.entry.wrong(f"a {self.kind} box without '{key}'", expected=f"{key}: ...")
        return read(self.items[key])


def _node(name: str, entry: YamlValue, where: Where) -> Node:
    entry = YamlValue(entry.node, entry.file, name)
    items = entry.mapping()
    kinds = [key for key in items if key in _READERS]
    if len(kinds) != 1:
        hint = did_you_mean(next(iter(items), ""), _READERS)
        raise NetworkError(
            "not exactly one kind of box",
            box=name,
            where=where,
            found=", ".join(items) or "nothing",
            expected=f"one of: {', '.join(_READERS)}",
            hint=hint,
        )
    parts = Parts(entry, where, kinds[0], items)
    allowed, read = _READERS[parts.kind]
    fed = () if parts.kind in ("source", *_NAMES_INPUTS) else ("from",)
    shed = () if parts.kind in ("source", "output") else ("shed",)
    entry.only(items, (parts.kind, *fed, *_ABOUT, "group", *allowed, *shed))
    return read(parts)


def _about(parts: Parts) -> About:
    texts = {key: parts.get(key, YamlValue.text, "") for key in _ABOUT}
    return About(**texts, group=parts.get("group", lambda entry: tuple(entry.text().split("/")), ()))


def _duration(entry: YamlValue) -> int:
    return entry.read(parse_duration, "a length of time")


# Each reader takes its own keys first, then those of every box: errors come in the order of the text.


def _source(parts: Parts) -> Source:
    format_ = read_source(parts.main)
    schema = parts.get("schema", read_schema, format_.schema)
    if schema is None:
        raise parts.main.wrong("needs to know its columns", expected="schema: name TYPE, ...")
    return Source(
        format=format_,
        schema=schema,
        timestamp=parts.get("timestamp", YamlValue.text, None),
        lateness=parts.get("lateness", _duration, 0),
        whole=parts.get("whole", YamlValue.flag, False),
        idle=parts.get("idle", _idle, 10_000_000),
        stays=parts.get("stays", YamlValue.flag, None),
        **parts.common(),
    )


def _idle(entry: YamlValue) -> int | None:
    return None if entry.text() == "never" else _duration(entry)


def _filter(parts: Parts) -> Filter:
    reads = parts.get("reads", YamlValue.texts, ())
    rowwise = parts.get("rowwise", YamlValue.flag, False)
    if parts.main.is_map:
        return Filter(function=_main_function(parts), reads=reads, rowwise=rowwise, **parts.common())
    return Filter(predicate=parts.main.text(), reads=reads, rowwise=rowwise, **parts.common())


def _main_function(parts: Parts) -> Function:
    items = parts.main.mapping()
    parts.main.only(items, ("function",))
    if not items:
        raise parts.main.wrong("empty", expected="{function: module:function}")
    return read_function(items["function"])


def _map(parts: Parts) -> Map:
    return Map(columns=read_pairs(parts.main), keep=parts.kind == "map", **parts.common())


def _apply(parts: Parts) -> Map:
    return Map(
        function=read_function(parts.main),
        reads=parts.get("reads", YamlValue.texts, ()),
        produces=parts.need("produces", read_schema),
        keep=parts.get("keep", YamlValue.flag, True),
        rowwise=parts.get("rowwise", YamlValue.flag, False),
        **parts.common(),
    )


def _drop(parts: Parts) -> Drop:
    rate = parts.main.number()
    return Drop(rate=rate, seed=parts.get("seed", YamlValue.whole_number, 0), **parts.common())


def _union(parts: Parts) -> Union:
    return Union(**parts.common())


def _group_by(parts: Parts) -> GroupBy:
    return GroupBy(keys=parts.main.texts(), **parts.common())


def _extent(entry: YamlValue) -> Extent:
    return entry.read(parse_extent, "a length")


def _computed(parts: Parts) -> ComputedFields:
    return {
        "aggregates": parts.get("aggregates", read_pairs, ()),
        "reads": parts.get("reads", YamlValue.texts, ()),
        "produces": parts.get("produces", read_schema, Schema()),
        "stamp": parts.get("stamp", YamlValue.text, "earliest"),
    }


def _tumble(parts: Parts) -> Tumble:
    size = _extent(parts.main)
    function = parts.get("function", read_function, None)
    return Tumble(size=size, function=function, **_computed(parts), **parts.common())


def _slide(parts: Parts) -> Slide:
    every = parts.need("every", _extent)
    size = _extent(parts.main)
    function = parts.get("function", read_function, None)
    return Slide(size=size, every=every, function=function, **_computed(parts), **parts.common())


def _latch(parts: Parts) -> Latch:
    if parts.main.is_map:
        state = parts.get("state", read_schema, Schema())
        function = _main_function(parts)
        return Latch(function=function, state=state, **_computed(parts), **parts.common())
    return Latch(size=_extent(parts.main), **_computed(parts), **parts.common())


def _column_latch(parts: Parts) -> ColumnLatch:
    logic = read_function(parts.main)
    return ColumnLatch(logic=logic, produces=parts.need("produces", read_schema), **parts.common())


def _resample(parts: Parts) -> Resample:
    return Resample(
        every=_duration(parts.main),
        limit=parts.get("limit", _duration, 10_000_000),
        columns=parts.need("columns", YamlValue.texts),
        **parts.common(),
    )


def _join(parts: Parts) -> Join:
    parts.main.texts()  # a wrong input is told before a wrong option
    return Join(
        on=parts.get("on", _on, ()),
        within=parts.need("within", _within),
        predicate=parts.get("where", YamlValue.text, ""),
        suffix=parts.get("suffix", YamlValue.text, "_right"),
        distribution=parts.get("distribution", YamlValue.text, "hash"),
        servers=parts.get("servers", YamlValue.whole_number, None),
        diffusion=_diffusion(parts),
        **parts.common(),
    )


def _diffusion(parts: Parts) -> Diffusion:
    plain = Diffusion()
    return Diffusion(
        master=parts.get("master", YamlValue.text, plain.master),
        placement=parts.get("placement", YamlValue.text, plain.placement),
        sample=parts.get("sample", _duration, plain.sample),
        threshold=parts.get("threshold", YamlValue.number, None),
        memory=parts.get("memory", YamlValue.whole_number, None),
        when_full=parts.get("when_full", YamlValue.text, plain.when_full),
    )


def _on(entry: YamlValue) -> tuple[tuple[str, str], ...]:
    return tuple(
        _couple(key, key.texts() * (2 if key.is_text else 1))
        for key in ([entry] if entry.is_text else entry.values())
    )


def _within(entry: YamlValue) -> tuple[int, int]:
    lengths = tuple(_duration(item) for item in ([entry, entry] if entry.is_text else entry.values()))
    return _couple(entry, lengths)


def _couple(entry: YamlValue, values: tuple[T, ...]) -> tuple[T, T]:
    if len(values) != 2:
        raise entry.wrong("not a pair", found=f"{len(values)} values", expected="two")
    return values[0], values[1]


def _point(parts: Parts) -> ConnectionPoint:
    keep = _duration(parts.main)
    key, shed = parts.get("key", YamlValue.text, None), parts.get("shed", YamlValue.flag, False)
    return ConnectionPoint(keep=keep, key=key, shed=shed, **parts.common())


def _view(parts: Parts) -> View:
    shed = parts.get("shed", YamlValue.flag, False)
    return View(keep=_duration(parts.main), qos=parts.get("qos", _qos, None), shed=shed, **parts.common())


def _output(parts: Parts) -> Output:
    return Output(to=read_sink(parts.main), qos=parts.get("qos", _qos, None), **parts.common())


def _qos(entry: YamlValue) -> QoS:
    items = entry.mapping()
    entry.only(items, ("delay", "loss", "value", "column", "weight", "approximate"))
    graphs = {name: _graph(items[name]) for name in ("delay", "loss", "value") if name in items}
    with entry.located():
        return QoS(
            delay=graphs.get("delay", ()),
            loss=graphs.get("loss", ()),
            value=graphs.get("value", ()),
            column=items["column"].text() if "column" in items else "",
            weight=items["weight"].number() if "weight" in items else 1.0,
            approximate=items["approximate"].flag() if "approximate" in items else False,
        )


def _graph(entry: YamlValue) -> tuple[tuple[float, float], ...]:
    return tuple(
        _couple(point, tuple(number.number() for number in point.values())) for point in entry.values()
    )


_SPREAD = tuple(vars(Diffusion()))
_WINDOW = ("aggregates", "function", "reads", "produces", "stamp")
_NO_BOXES = ("source", "connection_point", "view", "output")
_NAMES_INPUTS = ("union", "join")  # boxes whose main argument names their inputs
_READERS: Mapping[str, tuple[tuple[str, ...], Callable[[Parts], Node]]] = {
    "source": (("schema", "timestamp", "lateness", "whole", "idle", "stays"), _source),
    "filter": (("reads", "rowwise"), _filter),
    "map": ((), _map),
    "select": ((), _map),
    "apply": (("reads", "produces", "keep", "rowwise"), _apply),
    "drop": (("seed",), _drop),
    "union": ((), _union),
    "group_by": ((), _group_by),
    "tumble": (_WINDOW, _tumble),
    "slide": (("every", *_WINDOW), _slide),
    "latch": (("aggregates", "state", "reads", "produces", "stamp"), _latch),
    "column_latch": (("produces",), _column_latch),
    "resample": (("limit", "columns"), _resample),
    "join": (("on", "within", "where", "suffix", "distribution", "servers", *_SPREAD), _join),
    "connection_point": (("key",), _point),
    "view": (("qos",), _view),
    "output": (("qos",), _output),
}
