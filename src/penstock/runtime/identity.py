"""What a checkpoint belongs to: the stateful boxes it holds the state of. A changed one is refused with advice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from penstock.engine.spark.plan import lay_out
from penstock.model.boxes import Function, Join, Node, Trait
from penstock.model.errors import NetworkError, PenstockError
from penstock.model.network import Network
from penstock.model.types import Schema
from penstock.rewrite.subnetworks import SubNetwork
from penstock.store.durable import read_record, write_record

_FILE = "penstock.json"
_SPREAD = ("distribution", "servers", "diffusion")


class CheckpointError(PenstockError):
    """A checkpoint that does not fit the network."""


def facts(subs: tuple[SubNetwork, ...], partitions: int, *, fuse: bool) -> dict[str, dict[str, Any]]:
    """For each stateful box what its state rests on: configuration, input, function, and where the state lies."""
    found: dict[str, dict[str, Any]] = {}
    for sub in subs:
        layout = lay_out(sub, fuse=fuse)
        for name, stage in layout.home.items():
            node = sub.network.nodes[name]
            if Trait.STATEFUL in node.traits:
                inputs = [t.schema.ddl() + f" | {t.keys}" for t in sub.network.input_types(name)]
                # one entry is spread by Spark's hash of its keys, several by a hash of their own: the state lies accordingly
                entries = "one" if len(stage.entries) == 1 else "several"
                place = {"place": f"{sub.name}/{stage.name}", "partitions": partitions, "entries": entries}
                found[name] = {**place, "inputs": inputs, **_configuration(node)}
    return found


def _configuration(node: Node) -> dict[str, Any]:
    skipped = ("name", "where", "about", "inputs")
    found = {f.name: _plain(getattr(node, f.name)) for f in fields(node) if f.name not in skipped}
    if isinstance(node, Join) and not node.spread:
        # a join by hash says nothing about servers: checkpoints made before there were any stay good
        found = {name: text for name, text in found.items() if name not in _SPREAD}
    return found | {"kind": node.kind}


def _plain(value: Any) -> Any:
    if isinstance(value, Function):
        return f"{value.name} #{_code_hash(value.call)}"
    return value.ddl() if isinstance(value, Schema) else str(value)


def _code_hash(function: Any) -> str:
    """The function's compiled code: a changed comment keeps the state, a changed line does not."""
    code = getattr(function, "__code__", None) or getattr(
        getattr(function, "py_func", None), "__code__", None
    )
    if code is None:
        return "opaque"
    constants = [c for c in code.co_consts if not hasattr(c, "co_code") and not isinstance(c, str)]
    return hashlib.sha256(code.co_code + repr((code.co_names, constants)).encode()).hexdigest()[:12]


def claim(checkpoint: Path, network: Network, found: dict[str, dict[str, Any]]) -> None:
    """Take the checkpoint for this network, or say what changed since it was made and what can be done."""
    path = checkpoint / _FILE
    checkpoint.mkdir(parents=True, exist_ok=True)
    if path.exists():
        known = read_record(path)
        if known["network"] != network.name:
            raise CheckpointError(
                f"checkpoint {checkpoint} belongs to network '{known['network']}', not to '{network.name}'\n"
                "  hint:     give each network a checkpoint of its own"
            )
        for name, before in known["boxes"].items():
            if name in found and found[name] != before:
                raise _changed(checkpoint, network.nodes[name], before, found[name])
    write_record(path, {"network": network.name, "boxes": json.loads(json.dumps(found))})


def _changed(checkpoint: Path, node: Node, before: dict[str, Any], now: dict[str, Any]) -> NetworkError:
    key = next(k for k in sorted({*before, *now}) if before.get(k) != now.get(k))
    what = {
        "place": "where its state lies",
        "inputs": "what comes in",
        "partitions": "the number of partitions",
        "entries": "how its stage is fed",
    }.get(key, key)
    return NetworkError(
        f"its state in checkpoint {checkpoint} was made by another configuration: {what} changed",
        box=node.name,
        where=node.where,
        found=f"{key} = {now.get(key)}",
        expected=f"{key} = {before.get(key)}",
        hint="put it back; or start with a new checkpoint; or, while running, Runtime.replace(network, fresh_state=True)",
    )


def forget(checkpoint: Path, names: set[str]) -> None:
    """Let go of what was known about boxes whose state is being made anew."""
    path = checkpoint / _FILE
    if path.exists():
        known = read_record(path)
        known["boxes"] = {name: facts_ for name, facts_ in known["boxes"].items() if name not in names}
        write_record(path, known)
