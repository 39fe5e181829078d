"""YAML text -> Network.

Each value is read with its line (yaml.compose), so that errors name file and line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
)
from penstock.model.durations import parse_duration, parse_extent
from penstock.model.errors import NetworkError, Where, did_you_mean
from penstock.model.join_distribution import Diffusion
from penstock.model.qos import QoS
from penstock.model.text.yaml_format import read_function, read_pairs, read_schema, read_sink, read_source
from penstock.model.text.yaml_value import YamlValue
from penstock.model.types import Schema
from penstock.model.user_functions import Function
from penstock.model.writing.network import Network

_ABOUT = ("tag", "description", "manual")


def read_network(text: str, file: str) -> Network:
    """The network of a text; `file` stands in the errors."""
    root = YamlValue(_compose(text, file), file)
    entries = root.mapping()
    root.only(entries, ("network", "groups", "boxes"))
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
    return Network.of(entries["network"].text(), nodes, groups=groups)


def _compose(text: str, file: str) -> yaml.Node:
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
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
    kind: str
    items: dict[str, YamlValue]

    @property
    def main(self) -> YamlValue:
        return self.items[self.kind]

    def get(self, key: str, read: Callable[[YamlValue], Any], default: Any) -> Any:
        return read(self.items[key]) if key in self.items else default

    def need(self, key: str, read: Callable[[YamlValue], Any]) -> Any:
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
    parts = Parts(entry, kinds[0], items)
    allowed, read = _READERS[parts.kind]
    common = (*_ABOUT, "group") if parts.kind in ("source", "union", "join") else ("from", *_ABOUT, "group")
    entry.only(items, (parts.kind, *common, *allowed))
    config = read(parts)
    inputs = config.pop("inputs", None) or parts.get("from", YamlValue.texts, ())
    make: Callable[..., Node] = config.pop("make")
    node: Node = make(name=name, inputs=inputs, where=where, about=_about(parts), **config)
    return node


def _about(parts: Parts) -> About:
    texts = {key: parts.get(key, YamlValue.text, "") for key in _ABOUT}
    return About(**texts, group=parts.get("group", lambda entry: tuple(entry.text().split("/")), ()))


def _duration(entry: YamlValue) -> int:
    return entry.read(parse_duration, "a length of time")


def _source(parts: Parts) -> dict[str, Any]:
    format_ = read_source(parts.main)
    schema = parts.get("schema", read_schema, format_.schema)
    if schema is None:
        raise parts.main.wrong("needs to know its columns", expected="schema: name TYPE, ...")
    return {
        "make": Source,
        "format": format_,
        "schema": schema,
        "timestamp": parts.get("timestamp", YamlValue.text, None),
        "lateness": parts.get("lateness", _duration, 0),
        "whole": parts.get("whole", YamlValue.flag, False),
        "idle": parts.get(
            "idle", lambda entry: None if entry.text() == "never" else _duration(entry), 10_000_000
        ),
    }


def _filter(parts: Parts) -> dict[str, Any]:
    reads = parts.get("reads", YamlValue.texts, ())
    if parts.main.is_map:
        return {"make": Filter, "function": _main_function(parts), "reads": reads}
    return {"make": Filter, "predicate": parts.main.text(), "reads": reads}


def _main_function(parts: Parts) -> Function:
    items = parts.main.mapping()
    parts.main.only(items, ("function",))
    if not items:
        raise parts.main.wrong("empty", expected="{function: module:function}")
    return read_function(items["function"])


def _map(parts: Parts) -> dict[str, Any]:
    return {"make": Map, "columns": read_pairs(parts.main), "keep": parts.kind == "map"}


def _apply(parts: Parts) -> dict[str, Any]:
    return {
        "make": Map,
        "function": read_function(parts.main),
        "reads": parts.get("reads", YamlValue.texts, ()),
        "produces": parts.need("produces", read_schema),
        "keep": parts.get("keep", YamlValue.flag, True),
    }


def _drop(parts: Parts) -> dict[str, Any]:
    return {"make": Drop, "rate": parts.main.number(), "seed": parts.get("seed", YamlValue.whole_number, 0)}


def _computed(parts: Parts) -> dict[str, Any]:
    return {
        "aggregates": parts.get("aggregates", read_pairs, ()),
        "reads": parts.get("reads", YamlValue.texts, ()),
        "produces": parts.get("produces", read_schema, Schema()),
        "stamp": parts.get("stamp", YamlValue.text, "earliest"),
    }


def _tumble(parts: Parts) -> dict[str, Any]:
    size = parts.main.read(parse_extent, "a length")
    return {
        "make": Tumble,
        "size": size,
        "function": parts.get("function", read_function, None),
        **_computed(parts),
    }


def _slide(parts: Parts) -> dict[str, Any]:
    every = parts.need("every", lambda entry: entry.read(parse_extent, "a length"))
    return {**_tumble(parts), "make": Slide, "every": every}


def _latch(parts: Parts) -> dict[str, Any]:
    if parts.main.is_map:
        state = parts.get("state", read_schema, Schema())
        return {"make": Latch, "function": _main_function(parts), "state": state, **_computed(parts)}
    return {"make": Latch, "size": parts.main.read(parse_extent, "a length"), **_computed(parts)}


def _column_latch(parts: Parts) -> dict[str, Any]:
    return {
        "make": ColumnLatch,
        "logic": read_function(parts.main),
        "produces": parts.need("produces", read_schema),
    }


def _resample(parts: Parts) -> dict[str, Any]:
    return {
        "make": Resample,
        "every": _duration(parts.main),
        "limit": parts.get("limit", _duration, 10_000_000),
        "columns": parts.need("columns", YamlValue.texts),
    }


def _join(parts: Parts) -> dict[str, Any]:
    return {
        "make": Join,
        "inputs": parts.main.texts(),
        "on": parts.get("on", _on, ()),
        "within": parts.need("within", _within),
        "predicate": parts.get("where", YamlValue.text, ""),
        "suffix": parts.get("suffix", YamlValue.text, "_right"),
        "distribution": parts.get("distribution", YamlValue.text, "hash"),
        "servers": parts.get("servers", YamlValue.whole_number, None),
        "diffusion": _diffusion(parts),
    }


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


def _couple(entry: YamlValue, values: tuple[Any, ...]) -> tuple[Any, Any]:
    if len(values) != 2:
        raise entry.wrong("not a pair", found=f"{len(values)} values", expected="two")
    return values[0], values[1]


def _point(parts: Parts) -> dict[str, Any]:
    return {
        "make": ConnectionPoint,
        "keep": _duration(parts.main),
        "key": parts.get("key", YamlValue.text, None),
    }


def _view(parts: Parts) -> dict[str, Any]:
    return {"make": View, "keep": _duration(parts.main), "qos": parts.get("qos", _qos, None)}


def _output(parts: Parts) -> dict[str, Any]:
    to = read_sink(parts.main)
    return {"make": Output, "to": to, "qos": parts.get("qos", _qos, None)}


def _qos(entry: YamlValue) -> QoS:
    items = entry.mapping()
    entry.only(items, ("delay", "loss", "value", "column", "weight"))
    graphs = {name: _graph(items[name]) for name in ("delay", "loss", "value") if name in items}
    with entry.located():
        return QoS(
            delay=graphs.get("delay", ()),
            loss=graphs.get("loss", ()),
            value=graphs.get("value", ()),
            column=items["column"].text() if "column" in items else "",
            weight=items["weight"].number() if "weight" in items else 1.0,
        )


def _graph(entry: YamlValue) -> tuple[tuple[float, float], ...]:
    return tuple(
        _couple(point, tuple(number.number() for number in point.values())) for point in entry.values()
    )


_SPREAD = tuple(vars(Diffusion()))
_WINDOW = ("aggregates", "function", "reads", "produces", "stamp")
_READERS: Mapping[str, tuple[tuple[str, ...], Callable[[Parts], dict[str, Any]]]] = {
    "source": (("schema", "timestamp", "lateness", "whole", "idle"), _source),
    "filter": (("reads",), _filter),
    "map": ((), _map),
    "select": ((), _map),
    "apply": (("reads", "produces", "keep"), _apply),
    "drop": (("seed",), _drop),
    "union": ((), lambda parts: {"make": Union, "inputs": parts.main.texts()}),
    "group_by": ((), lambda parts: {"make": GroupBy, "keys": parts.main.texts()}),
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
