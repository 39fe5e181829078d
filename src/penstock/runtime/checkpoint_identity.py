"""What a checkpoint belongs to: the sub-networks that have read up to somewhere, the stateful boxes it holds the state of.

A changed or vanished box is refused with advice, and so is a sub-network that would read again what it has read.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from penstock.engine.spark.entry.points import pushed_ranges
from penstock.engine.spark.layout.plan import lay_out
from penstock.model.boxes import Join, Node, Output, Trait
from penstock.model.errors import NetworkError, PenstockError, did_you_mean
from penstock.model.types import Schema
from penstock.model.user_functions import Function
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork
from penstock.runtime.checkpoint_layout import SubnetworkHome, ends_of, homes_of, settle
from penstock.runtime.fingerprint import fingerprint
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
                found[name] = {**place, "inputs": inputs, **_configuration(node), **_looked_up(sub, node)}
    return found


def _looked_up(sub: SubNetwork, node: Node) -> dict[str, Any]:
    """A join that looks keys up in a point has seen those only: with other ranges its state would lack partners."""
    if not isinstance(node, Join):
        return {}
    points = [
        (name, getattr(sub.network.nodes[name], "key", None)) for name in node.inputs if name in sub.inputs
    ]
    ranges = {name: pushed_ranges(sub.network, name, key) for name, key in points if key is not None}
    found = {name: str(each) for name, each in ranges.items() if each is not None}
    return {"looked up": found} if found else {}


def _configuration(node: Node) -> dict[str, Any]:
    skipped = ("name", "where", "about", "inputs", "origin")
    found = {f.name: _plain(getattr(node, f.name)) for f in fields(node) if f.name not in skipped}
    if isinstance(node, Join) and not node.spread:
        # a join by hash says nothing about servers: checkpoints made before there were any stay good
        found = {name: text for name, text in found.items() if name not in _SPREAD}
    return found | {"kind": node.kind}


def _plain(value: Any) -> Any:
    if isinstance(value, Function):
        return f"{value.name} #{fingerprint(value.call)}"
    return value.ddl() if isinstance(value, Schema) else str(value)


def same(one: Network, other: Network) -> bool:
    """The same nodes, the same code in their functions, and the very same lists and callbacks at their ends."""
    return one == other and all(_same_code(one.nodes[name], node) for name, node in other.nodes.items())


def _same_code(one: Node, other: Node) -> bool:
    if isinstance(one, Output) and one.to.in_process:
        return one.to is getattr(other, "to", None)
    functions = [f.name for f in fields(one) if isinstance(getattr(one, f.name), Function)]
    return all(_plain(getattr(one, name)) == _plain(getattr(other, name)) for name in functions)


def settled(checkpoint: Path, subs: tuple[SubNetwork, ...], *, moved: bool = False) -> tuple[SubNetwork, ...]:
    """The sub-networks under the names by which the checkpoint knows them."""
    return settle(subs, homes(checkpoint), moved=moved)


def homes(checkpoint: Path) -> dict[str, SubnetworkHome]:
    """The sub-networks that the checkpoint knows, also those that do not run now."""
    path = checkpoint / _FILE
    found: dict[str, SubnetworkHome] = read_record(path).get("homes", {}) if path.exists() else {}
    return found


def claim(
    checkpoint: Path,
    network: Network,
    subs: tuple[SubNetwork, ...],
    found: dict[str, dict[str, Any]],
    *,
    fresh: bool = False,
) -> None:
    """Take the checkpoint for this network, or say what changed since it was made and what can be done.

    `fresh`: state is made anew, so boxes may have changed.
    """
    path = checkpoint / _FILE
    checkpoint.mkdir(parents=True, exist_ok=True)
    known: dict[str, Any] = read_record(path) if path.exists() else {"network": network.name}
    if known["network"] != network.name:
        raise CheckpointError(
            f"checkpoint {checkpoint} belongs to network '{known['network']}', not to '{network.name}'\n"
            "  hint:     give each network a checkpoint of its own"
        )
    boxes, feeds = known.get("boxes", {}), known.get("feeds", {})
    if not fresh:
        for name, before in boxes.items():
            if name in found and found[name] != before:
                raise _changed(checkpoint, network.nodes[name], before, found[name])
            if name not in found:
                _left_with_its_ends(checkpoint, network, found, name, feeds.get(name, ()))
    # A sub-network that does not run now may come back, and its place stays as it is. Where others run on, time goes by
    # without the box, and what it remembers is of no use any more.
    running = {sub.name for sub in subs}
    lost = {n: b for n, b in boxes.items() if n not in found and b["place"].split("/")[0] in running}
    _give_up(checkpoint, lost, found)
    kept = {n: b for n, b in boxes.items() if n not in lost}
    record = {
        "network": network.name,
        "homes": homes_of(subs, known.get("homes", {})),
        "boxes": {**kept, **found},
        "feeds": {**{n: feeds.get(n, ()) for n in kept}, **_feeds(subs, found)},
    }
    write_record(path, json.loads(json.dumps(record)))


def _feeds(subs: tuple[SubNetwork, ...], found: Mapping[str, Any]) -> dict[str, list[str]]:
    """Which points and outputs of its sub-network each stateful box has a way to."""
    made: dict[str, list[str]] = {}
    for sub in subs:
        ways: dict[str, set[str]] = {}
        for node in reversed(list(sub.network.nodes.values())):
            ways[node.name] = {end for reader in sub.network.readers(node.name) for end in ways[reader]}
            if node.name in ends_of(sub):
                ways[node.name].add(node.name)
        made |= {name: sorted(ends) for name, ends in ways.items() if name in found}
    return made


def _left_with_its_ends(
    checkpoint: Path, network: Network, found: Mapping[str, Any], name: str, ends: Any
) -> None:
    """A box may go together with all that it fed; else it was renamed or cut out, and what it remembers would be lost."""
    there = [end for end in ends if end in network.nodes]
    if there:
        raise NetworkError(
            f"checkpoint {checkpoint} holds the state of box '{name}', which is gone from the way to '{there[0]}'",
            box=there[0], where=network.nodes[there[0]].where, found=did_you_mean(name, found) or "no stateful box",
            expected=f"a box named '{name}'",
            hint="put it back under its name; or start with a new checkpoint; "
            "or, while running, Runtime.replace(network, fresh_state=True)",
        )  # fmt: skip


def _give_up(checkpoint: Path, lost: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    for place in {box["place"] for box in lost.values()} - {box["place"] for box in found.values()}:
        home, stage = place.split("/", 1)
        shutil.rmtree(checkpoint / "queries" / home / "state" / stage, ignore_errors=True)


def claim_attached(place: Path, sub: SubNetwork, found: dict[str, dict[str, Any]]) -> None:
    """The same for an ad-hoc query that goes on where it stopped: its place knows its boxes."""
    path = place / "boxes.json"
    place.mkdir(parents=True, exist_ok=True)
    for name, before in (read_record(path) if path.exists() else {}).items():
        if found.get(name) != before:
            node = sub.network.nodes.get(name, sub.network.nodes[ends_of(sub)[0]])
            raise _changed(place, node, before, found.get(name, {}))
    write_record(path, json.loads(json.dumps(found)))


def _changed(checkpoint: Path, node: Node, before: dict[str, Any], now: dict[str, Any]) -> NetworkError:
    key = next(k for k in sorted({*before, *now}) if before.get(k) != now.get(k))
    what = {
        "place": "where its state lies",
        "inputs": "what comes in",
        "partitions": "the number of partitions",
        "entries": "how its stage is fed",
        "looked up": "which keys it looks up",
    }.get(key, key)
    return NetworkError(
        f"its state in checkpoint {checkpoint} was made by another configuration: {what} changed",
        box=node.name,
        where=node.where,
        found=f"{key} = {now.get(key)}",
        expected=f"{key} = {before.get(key)}",
        hint="put it back; or start with a new checkpoint; or, while running, Runtime.replace(network, fresh_state=True)",
    )


def forget_home(checkpoint: Path, name: str) -> None:
    """Let go of a sub-network that has left for good, and of its boxes."""
    path = checkpoint / _FILE
    if path.exists():
        known = read_record(path)
        known.get("homes", {}).pop(name, None)
        known["boxes"] = {n: b for n, b in known["boxes"].items() if b["place"].split("/")[0] != name}
        write_record(path, known)
