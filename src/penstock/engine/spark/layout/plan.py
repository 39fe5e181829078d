"""How a sub-network is laid out on Spark: native boxes as DataFrame operations, the rest in fused stages.

A stage is a set of adjacent vectorised boxes with the same partitioning. It crosses into Python once a train
and has one state version for each partition. Stateless boxes after a stage join it: the output of windows is
small, and sending it back to the JVM only to filter it would cost a job. Boxes before the first stage stay
native.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.engine.spark.layout.expressions import fits_spark
from penstock.model.boxes import Filter, Join, Keys, Map, Node, Source, Trait
from penstock.model.types import INTEGRAL, StreamType
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork

# Boxes that `native.py` can run as DataFrame operations.
NATIVE_KINDS = frozenset({"filter", "map", "drop", "union", "group_by"})
FED = "_fed"  # in a partial aggregate: the number of tuples in it
NATIVE_DEPTH = 30
"""Native boxes one behind the other. Spark walks a plan by recursion, and a plan of some 150 overflows its
stack. What comes after these runs in a stage, where a box is one turn of a loop.
"""
SPREAD = ("_server",)  # the keys of a stage whose tuples may lie anywhere; no box has such a key


@dataclass(frozen=True)
class StageInput:
    """An arrow into a stage: from `tail` to input `index` of box `head`, partitioned by `keys`."""

    tail: str
    head: str
    index: int
    keys: Keys


@dataclass
class Stage:
    """Boxes that run in one crossing into Python.

    `keys` None: no state, any partitioning will do; (): all in one partition. `servers`: how many partitions
    the stage of a diffused join has, if it specifies that.
    """

    name: str
    keys: Keys | None
    servers: int | None = None
    nodes: list[str] = field(default_factory=list)
    entries: list[StageInput] = field(default_factory=list)

    @property
    def stateful(self) -> bool:
        return self.keys is not None

    def keeps_state(self, network: Network) -> bool:
        """Whether one of its boxes has state. The first stage of a packed feed has keys even without."""
        return any(Trait.STATEFUL in network.nodes[name].traits for name in self.nodes)

    @property
    def spread(self) -> bool:
        """Whether this is the stage of a diffused join: the train's roles say where tuples go."""
        return self.keys == SPREAD


@dataclass(frozen=True)
class Layout:
    """Native boxes in order, stages in order, and where each node lives (None: native)."""

    native: tuple[str, ...]
    stages: tuple[Stage, ...]
    home: dict[str, Stage]
    # The first stages take packed records, partitioned by their writer: see `tasks/packed_stage.py`.
    rooted: bool = False


def lay_out(sub: SubNetwork, *, fuse: bool = True) -> Layout:
    """Give every box its place; `fuse=False` puts each vectorised box into a stage of its own."""
    if fed_alone(sub):
        layout = _lay_out(sub, list(sub.inputs), fuse=fuse)
        # Packed tuples go where their keys say, those of a diffused join where its roles say.
        if not layout.native and not any(stage.spread for stage in layout.stages):
            return layout
    return _lay_out(sub, [], fuse=fuse)


def fed_alone(sub: SubNetwork) -> bool:
    """Whether the only input is a feed that its writer has partitioned."""
    return len(sub.inputs) == 1 and _partitioned_by(sub.network.nodes[sub.inputs[0]]) is not None


def _lay_out(sub: SubNetwork, feeds: list[str], *, fuse: bool) -> Layout:
    net = sub.network
    native: list[str] = []
    stages: list[Stage] = []
    home: dict[str, Stage] = {}
    depth: dict[str, int] = {}  # of native boxes
    for name in feeds:
        # The source itself comes first in its stage, which unpacks its records.
        home[name] = Stage(name, _partitioned_by(net.nodes[name]))
        stages.append(home[name])
    for node in net.nodes.values():
        if not node.is_box:
            continue
        stage = _stage_for(net, node, home, fuse=fuse)
        if stage is None:
            depth[node.name] = 1 + max(depth.get(behind(net, up), 0) for up in node.inputs)
            if depth[node.name] <= NATIVE_DEPTH:
                native.append(node.name)
                continue
            stage = Stage(node.name, None)
        if stage not in stages:
            stages.append(stage)
        stage.nodes.append(node.name)
        home[node.name] = stage
        _enter(net, node, stage, home)
    return Layout(tuple(native), tuple(stages), home, rooted=bool(feeds))


def _partitioned_by(node: Node) -> Keys | None:
    """The keys by which a source's tuples come in groups.

    The tuples must also be in order: packed trains do not look for late tuples.
    """
    return node.format.partitioned_by if isinstance(node, Source) and node.format.in_order else None


def vectorised(net: Network, node: Node) -> bool:
    """Whether a box needs Python: it has no native form, or one that is too long, or is a user's function."""
    if node.kind not in NATIVE_KINDS or node.user_function is not None:
        return True
    texts = [node.predicate] if isinstance(node, Filter) else []
    texts += [text for _, text in node.columns] if isinstance(node, Map) else []
    return not all(fits_spark(text, net.types[node.inputs[0]].schema) for text in texts)


def behind(net: Network, name: str) -> str:
    """The box whose tuples an arrow carries: connection points inside a sub-network only pass them on."""
    node = net.nodes[name]
    while Trait.KEPT in node.traits and node.inputs:
        node = net.nodes[node.inputs[0]]
    return node.name


def box_keys(net: Network, node: Node, index: int) -> Keys | None:
    """The columns of input `index` by which the box must be partitioned."""
    return node.partition_keys(index, net.types[node.inputs[index]].keys)


def mixes_numbers(net: Network, stage: Stage) -> bool:
    """Whether a join of the stage compares whole numbers with fractions: then 2 must go where 2.0 goes."""
    joins = [node for name in stage.nodes if isinstance(node := net.nodes[name], Join)]
    return any(_mixes_numbers(join, net.input_types(join.name)) for join in joins)


def _mixes_numbers(join: Join, inputs: Sequence[StreamType]) -> bool:
    left, right = (type_.schema for type_ in inputs)
    # Keys of two types are numbers: the check refuses others.
    return any((left.type_of(a) in INTEGRAL) != (right.type_of(b) in INTEGRAL) for a, b in join.on)


def _stage_for(net: Network, node: Node, home: dict[str, Stage], *, fuse: bool) -> Stage | None:
    feeding = [home.get(behind(net, name)) for name in node.inputs]
    if not vectorised(net, node):
        # Only if all its input is already there. Otherwise it would pull native arrows into Python.
        first = feeding[0]
        return first if first is not None and all(stage is first for stage in feeding) else None
    if isinstance(node, Join) and node.spread:
        return Stage(node.name, SPREAD, node.servers)
    if fuse:
        for stage in feeding:
            if stage is not None and _may_join(net, node, stage, home):
                return stage
    return Stage(node.name, box_keys(net, node, 0))


def _may_join(net: Network, node: Node, stage: Stage, home: dict[str, Stage]) -> bool:
    """Whether the stage's partitioning suits the box, and no arrow leaves the stage and comes back."""
    for index, name in enumerate(node.inputs):
        if home.get(behind(net, name)) is not stage:
            if Trait.STATELESS in node.traits or _depends(net, name, stage):
                return False
        elif not _compatible(net, node, index, stage):
            return False
    return True


def _compatible(net: Network, node: Node, index: int, stage: Stage) -> bool:
    wanted = box_keys(net, node, index)
    if wanted is None:
        return True
    if not stage.keys or not wanted:
        return stage.keys == wanted == ()
    if len(node.inputs) > 1:
        # Other inputs enter by the same columns, so these must be exactly the keys, in order.
        return wanted == stage.keys and _carried(net, node.inputs[index], stage, stage.keys)
    return set(stage.keys) <= set(wanted) and _carried(net, node.inputs[index], stage, stage.keys)


def _carried(net: Network, name: str, stage: Stage, keys: Keys) -> bool:
    """Whether the columns reach the arrow with the values by which the stage is partitioned.

    If a user's function produces a column with a key's name, this trusts it; the task checks it (`guarded`).
    """
    return all(
        all(key in net.types[up].schema for key in keys) and net.nodes[up].carries(keys)
        for up in _upstream(net, name, within=set(stage.nodes))
    )


def _upstream(net: Network, name: str, *, within: set[str] | None = None) -> set[str]:
    """The boxes that an arrow's tuples come through, those `within` only; a stack, as chains may be long."""
    boxes: set[str] = set()
    stack = [behind(net, name)]
    while stack:
        box = stack.pop()
        if box not in boxes and (within is None or box in within):
            boxes.add(box)
            stack += [behind(net, up) for up in net.nodes[box].inputs]
    return boxes


def guarded(net: Network, stage: Stage) -> dict[str, Keys]:
    """Boxes with a user's function that must preserve the keys, because others are fused after them."""
    guards = {}
    for name in stage.nodes:
        node = net.nodes[name]
        fused = any(reader in stage.nodes for reader in net.readers(name))
        keys = tuple(key for key in stage.keys or () if key in net.types[name].schema)
        if fused and keys and node.user_function is not None:
            guards[name] = keys
    return guards


def _depends(net: Network, name: str, stage: Stage) -> bool:
    """Whether the arrow's tuples come, directly or further up, from the stage."""
    # A feed has given its name to its stage, and is none of its boxes.
    return not _upstream(net, name).isdisjoint({stage.name, *stage.nodes})


def _enter(net: Network, node: Node, stage: Stage, home: dict[str, Stage]) -> None:
    for index, name in enumerate(node.inputs):
        if home.get(behind(net, name)) is not stage:
            stage.entries.append(
                StageInput(behind(net, name), node.name, index, box_keys(net, node, index) or ())
            )
