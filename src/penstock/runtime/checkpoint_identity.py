"""Which network a checkpoint belongs to: the sub-networks with a position in it, the boxes with state in it.

A changed or vanished box is refused with advice. So is a sub-network that would read its input a second time.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, cast

from penstock.engine.spark.trains.own_records import void_state
from penstock.model.boxes import Node
from penstock.model.errors import NetworkError, PenstockError, did_you_mean
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork
from penstock.runtime.box_facts import BoxFacts, Fact
from penstock.runtime.checkpoint_layout import SubnetworkHome, ends_of, homes_of, settle
from penstock.store.durable import make_directory, read_record, write_record

_FILE = "penstock.json"
_FRESH = "or, while running, Runtime.replace(network, fresh_state=True)"
_WORDS = {
    "place": "where its state lies",
    "inputs": "what comes in",
    "partitions": "the number of partitions",
    "entries": "how its stage is fed",
    "looked up": "which keys it looks up",
    "spread by": "how its tuples are spread",
}


class CheckpointError(PenstockError):
    """A checkpoint that does not fit the network."""


class _Identity(TypedDict):
    """What a checkpoint records about itself."""

    network: str
    homes: dict[str, SubnetworkHome]
    boxes: BoxFacts
    feeds: dict[str, list[str]]  # stateful box -> the points and outputs that its tuples reach


def settled(checkpoint: Path, subs: Sequence[SubNetwork], *, moved: bool = False) -> tuple[SubNetwork, ...]:
    """The sub-networks under the names by which the checkpoint knows them."""
    return settle(subs, known_subnetworks(checkpoint), moved=moved)


def known_subnetworks(checkpoint: Path) -> dict[str, SubnetworkHome]:
    """The sub-networks that the checkpoint knows, including those that do not run now."""
    return _read(checkpoint)["homes"]


def claim(
    checkpoint: Path, network: Network, subs: Sequence[SubNetwork], boxes: BoxFacts, *, fresh: bool = False
) -> None:
    """Claim the checkpoint for this network, or say what has changed since it was made and what to do.

    `fresh`: state is rebuilt, so boxes may have changed.
    """
    make_directory(checkpoint)
    before = _read(checkpoint)
    _check_network(checkpoint, network, before["network"])
    if not fresh:
        _check_boxes(checkpoint, network, before, boxes)
    lost = _lost(before["boxes"], boxes, {sub.name for sub in subs})
    _delete_state(checkpoint, lost, boxes)
    kept = {name: box for name, box in before["boxes"].items() if name not in lost}
    feeds = {name: before["feeds"].get(name, []) for name in kept}
    _write(
        checkpoint,
        _Identity(
            network=network.name,
            homes=homes_of(subs, before["homes"]),
            boxes={**kept, **boxes},
            feeds={**feeds, **_feeds(subs, boxes)},
        ),
    )


def must_fit(checkpoint: Path, network: Network, boxes: BoxFacts) -> None:
    """Refuse a network whose boxes cannot go on with the checkpoint's state; changes nothing."""
    before = _read(checkpoint)
    _check_network(checkpoint, network, before["network"])
    _check_boxes(checkpoint, network, before, boxes)


def forget_subnetwork(checkpoint: Path, name: str) -> None:
    """Remove a sub-network that has left for good, and its boxes."""
    if (checkpoint / _FILE).exists():
        known = _read(checkpoint)
        known["homes"].pop(name, None)
        known["boxes"] = {box: fact for box, fact in known["boxes"].items() if _home(fact) != name}
        _write(checkpoint, known)


def claim_attached(query_dir: Path, sub: SubNetwork, boxes: BoxFacts) -> None:
    """Claim an ad-hoc query that resumes: its own directory knows its boxes."""
    path = query_dir / "boxes.json"
    make_directory(query_dir)
    for name, before in (cast("BoxFacts", read_record(path)) if path.exists() else {}).items():
        if boxes.get(name) != before:
            node = sub.network.nodes.get(name, sub.network.nodes[ends_of(sub)[0]])
            raise _changed(query_dir, node, before, boxes.get(name, {}))
    write_record(path, json.loads(json.dumps(boxes)))


# -- the record


def _read(checkpoint: Path) -> _Identity:
    path = checkpoint / _FILE
    if not path.exists():
        return _Identity(network="", homes={}, boxes={}, feeds={})
    return cast("_Identity", read_record(path))


def _write(checkpoint: Path, identity: _Identity) -> None:
    write_record(checkpoint / _FILE, json.loads(json.dumps(identity)))


def _home(fact: Mapping[str, Fact]) -> str:
    """The sub-network whose directory holds the state of a box."""
    return str(fact["place"]).split("/", maxsplit=1)[0]


# -- checks


def _check_network(checkpoint: Path, network: Network, known: str) -> None:
    if known not in ("", network.name):
        raise CheckpointError(
            f"checkpoint {checkpoint} belongs to network '{known}', not to '{network.name}'",
            hint="give each network a checkpoint of its own",
        )


def _check_boxes(checkpoint: Path, network: Network, before: _Identity, boxes: BoxFacts) -> None:
    """Refuse state made by another configuration, or by a box that no longer exists."""
    for name, fact in before["boxes"].items():
        if name not in boxes:
            _check_gone_with_its_ends(checkpoint, network, boxes, name, before["feeds"].get(name, []))
        elif boxes[name] != fact:
            raise _changed(checkpoint, network.nodes[name], fact, boxes[name])


def _check_gone_with_its_ends(
    checkpoint: Path, network: Network, boxes: Iterable[str], name: str, ends: Sequence[str]
) -> None:
    """Allow a box to leave together with everything it fed.

    Otherwise it was renamed or cut out, and its state would be lost.
    """
    still_there = next((end for end in ends if end in network.nodes), None)
    if still_there is None:
        return
    gone = f"box '{name}', which is gone from the way to '{still_there}'"
    raise NetworkError(
        f"checkpoint {checkpoint} holds the state of {gone}",
        box=still_there,
        where=network.nodes[still_there].where,
        found=did_you_mean(name, boxes) or "no stateful box",
        expected=f"a box named '{name}'",
        hint=f"put it back under its name; or start with a new checkpoint; {_FRESH}",
    )


def _changed(
    checkpoint: Path, node: Node, before: Mapping[str, Fact], now: Mapping[str, Fact]
) -> NetworkError:
    key = next(key for key in sorted({*before, *now}) if before.get(key) != now.get(key))
    what = _WORDS.get(key, key)
    return NetworkError(
        f"its state in checkpoint {checkpoint} was made by another configuration: {what} changed",
        box=node.name,
        where=node.where,
        found=f"{key} = {now.get(key)}",
        expected=f"{key} = {before.get(key)}",
        hint=f"put it back; or start with a new checkpoint; {_FRESH}",
    )


# -- state that is of no use any more


def _lost(before: BoxFacts, boxes: BoxFacts, running: set[str]) -> BoxFacts:
    """Boxes that left a sub-network which still runs: time passes without them, so their state is useless.

    A sub-network that does not run now may come back; its boxes keep their state.
    """
    return {name: fact for name, fact in before.items() if name not in boxes and _home(fact) in running}


def _delete_state(checkpoint: Path, lost: BoxFacts, boxes: BoxFacts) -> None:
    for state_dir in {str(fact["place"]) for fact in lost.values()} - {
        str(f["place"]) for f in boxes.values()
    }:
        home, stage = state_dir.split("/", 1)
        void_state(checkpoint / "queries" / home, [stage])
        shutil.rmtree(checkpoint / "queries" / home / "state" / stage, ignore_errors=True)


def _feeds(subs: Iterable[SubNetwork], boxes: Iterable[str]) -> dict[str, list[str]]:
    """The points and outputs of its sub-network that each stateful box leads to."""
    feeds: dict[str, list[str]] = {}
    for sub in subs:
        reached: dict[str, set[str]] = {}
        for node in reversed(list(sub.network.nodes.values())):
            readers = sub.network.readers(node.name)
            reached[node.name] = {end for reader in readers for end in reached[reader]}
            if node.name in ends_of(sub):
                reached[node.name].add(node.name)
        feeds |= {name: sorted(ends) for name, ends in reached.items() if name in boxes}
    return feeds
