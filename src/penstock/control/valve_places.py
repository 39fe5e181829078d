"""Where a network may be shed, by which grain, and what that promises (A84, A88): see docs/shedding.md.

At a source or behind a split stands a valve, if all that lies behind it allows that. All valves below one
source have its lot, behind connection points too, and its grain where that is possible: then what a branch
keeps is a part of what the source keeps, and one drop serves all of them. Windows and keys have one lot in
all networks: of two sources that meet, the same ones stay. A feed whose boxes say `shed: keys` loses whole
groups, unread, and nothing is shed behind it: who is in gets all its answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.engine.contract.valve import Valve, lot_of, valve_places
from penstock.model.boxes import Join, Kept, Keys, Node, Output, Source, Trait, View, Windowed
from penstock.model.checks.shedding import NEVER, has_time_windows, needs_whole_keys
from penstock.model.durations import Time
from penstock.model.error_location import node_error
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork, reaching, split

TUPLES, WINDOWS, KEYS = "tuples", "windows", "keys"
_NEEDED = {
    WINDOWS: "windows of time of one length behind that place, and nothing but joins remembers their answers",
    KEYS: "all boxes with memory behind that place grouped by a key that is a column there",
}
_WINDOWS_LOT, _KEYS_LOT = lot_of("all windows"), lot_of("all keys")


@dataclass(frozen=True)
class ValvePlace:
    """A source or an arrow behind a split. `outputs`: those that lose what is shed here.

    `grain` None: nothing may be shed here, and `why` says so; `wanted`: the grain that a box behind asks for,
    where that is why. `exact`: each answer delivered is one of the exact ones; otherwise some are
    approximate, as their outputs allow.
    """

    at: str
    subnetwork: str
    outputs: frozenset[str]
    grain: str | None = None
    why: str = ""
    wanted: str = ""
    exact: bool = True
    lot: int = 0
    keys: Keys = ()
    size: int = 0
    every: int = 0
    slice_bits: int = 40

    @property
    def in_groups(self) -> bool:
        """Whether the groups of a feed stay or go as a whole."""
        return self.grain == KEYS and not self.keys

    @property
    def early(self) -> bool:
        """Whether what is shed here, at a source, is dropped before it is decoded."""
        return self.in_groups or self.grain in ("slices", "blocks")

    @property
    def choice(self) -> tuple[object, ...]:
        """Of two places with the same choice, one that keeps less keeps a part of what the other keeps."""
        return (self.grain, self.lot, self.keys, self.size, self.every, self.slice_bits)

    def valve(self, share: float) -> Valve:
        """The valve that keeps this share here."""
        assert self.grain is not None, self.why
        return Valve(
            self.at,
            share,
            self.grain,
            self.lot,
            self.keys,
            self.size,
            self.every,
            slice_bits=self.slice_bits,
        )


def places(network: Network) -> tuple[ValvePlace, ...]:
    """All places of a network, those of each sub-network from its inputs down."""
    return tuple(place for sub in split(network) for place in sub_places(network, sub))


def sub_places(network: Network, sub: SubNetwork) -> tuple[ValvePlace, ...]:
    """The places of one sub-network; `network`: the whole one, to see what lies behind its points."""
    grains = {name: _judged(network, sub, name, {}) for name in sub.inputs}
    grains |= {name: _as_origin(network, sub, place) for name, place in grains.items()}
    arrows = [at for at in valve_places(sub) if at not in grains]
    return (*grains.values(), *(_judged(network, sub, at, grains) for at in arrows))


def check_grains(network: Network, subs: Iterable[SubNetwork] | None = None) -> None:
    """Refuse a box that says by which grain to shed, if nothing in front of it can be shed by that.

    Nothing would ever be shed there, and the user would wait for it. `subs`: what runs of the network, if it
    is that of an attached query, which cannot be split.
    """
    behind = {
        place: _behind(network, _starts(sub, place.at))
        for sub in (split(network) if subs is None else subs)
        for place in sub_places(network, sub)
    }
    for node in network.nodes.values():
        above = sorted((p for p, names in behind.items() if node.name in names), key=lambda p: len(behind[p]))
        if node.shed_by and above and not any(place.grain for place in above):
            _must_not_want(node, above[0])


def _must_not_want(node: Node, nearest: ValvePlace) -> None:
    if nearest.wanted == node.shed_by:
        raise node_error(
            node,
            f"shed: {node.shed_by}, but nothing in front of this {node.kind} can be shed so",
            found=f"at '{nearest.at}': {nearest.why}",
            expected=_NEEDED[node.shed_by],
            hint="leave `shed` out: then the grain is taken that keeps answers exact",
        )


def _starts(sub: SubNetwork, at: str) -> list[str]:
    """The first nodes behind a place."""
    tail, _, head = at.partition("->")
    return [head] if head else list(sub.network.readers(tail))


def _as_origin(network: Network, sub: SubNetwork, place: ValvePlace) -> ValvePlace:
    """The place at an input, with the choice of the source whose tuples come through it, if it is a point.

    The point may have lost some of them by that choice: making it once more then drops nothing else.
    """
    origins = _roots_above(network, place.at, network.sources)
    if place.at in network.sources or place.grain is None or len(origins) != 1:
        return place
    starts = list(network.readers(origins[0]))
    nodes = [network.nodes[name] for name in _behind(network, starts)]
    if any(map(_refusal, nodes)):
        return place
    origin = _with_grain(
        network, ValvePlace(origins[0], sub.name, place.outputs, lot=lot_of(origins[0])), starts, nodes
    )
    return replace(_as_input(place, origin), subnetwork=sub.name)


def _roots_above(network: Network, at: str, roots: Collection[str]) -> list[str]:
    """Those of these nodes whose tuples come here; none if a box with memory lies between."""
    todo, reached = [at.partition("->")[0]], []
    while todo:
        name = todo.pop()
        node = network.nodes[name]
        if name in roots:
            reached.append(name)
        elif Trait.STATEFUL not in node.traits:
            todo += node.inputs
        else:
            return []
    return reached


def _judged(network: Network, sub: SubNetwork, at: str, grains: Mapping[str, ValvePlace]) -> ValvePlace:
    tail, _, head = at.partition("->")
    starts = _starts(sub, at)
    nodes = [network.nodes[name] for name in _behind(network, starts)]
    outputs = frozenset(n.name for n in nodes if isinstance(n, Output) or n.qos is not None)
    inputs = _roots_above(sub.network, at, sub.inputs)
    # Places below one source share its lot: what one keeps is then a part of what another keeps.
    lot = lot_of(inputs[0] if len(inputs) == 1 else at)
    blank = ValvePlace(at, sub.name, outputs, lot=lot)
    refusal = next(filter(None, map(_refusal, nodes)), "")
    refusal = refusal or ("" if outputs else f"nothing behind '{tail}' has a quality of service")
    refusal = refusal or _goes_in_groups(sub, tail, grains)
    if refusal:
        return replace(blank, why=refusal)
    of_input = grains.get(inputs[0]) if len(inputs) == 1 else None
    own = _with_grain(network, blank, starts, nodes)
    return _as_input(own, of_input) if head and of_input is not None else own


def _goes_in_groups(sub: SubNetwork, tail: str, grains: Mapping[str, ValvePlace]) -> str:
    """Why nothing is shed behind a source that loses whole groups."""
    above = reaching(sub.network, [tail])
    whole = [name for name, place in grains.items() if place.in_groups and name in above]
    return f"'{whole[0]}' loses whole groups, with all their answers" if whole else ""


def _as_input(place: ValvePlace, of_input: ValvePlace) -> ValvePlace:
    """With the grain of the input, if that keeps the branch exact too: then one drop serves both.

    Not with whole windows: for the length of a window a branch would then do all of its work or nothing, and
    no share between could be kept for a second.
    """
    loose = place.exact and _row_grain(place.grain) == TUPLES  # any choice of tuples is exact here
    shared = loose and of_input.grain not in (None, WINDOWS)
    return replace(of_input, at=place.at, outputs=place.outputs) if shared else place


def _behind(network: Network, starts: Iterable[str]) -> list[str]:
    """The nodes that tuples reach from these, in the order of the network."""
    reached = set(starts)
    for node in network.nodes.values():
        if reached & set(node.inputs):
            reached.add(node.name)
    return [name for name in network.nodes if name in reached]


def _refusal(node: Node) -> str:
    """Why nothing may be shed in front of a node; empty: it may."""
    qos, name = node.qos, f"{node.kind.replace('_', ' ')} '{node.name}'"
    if isinstance(node, Kept) and not node.shed:
        return f"{name} promises its whole history (shed: true allows it)"
    if (isinstance(node, Output) or qos is not None) and (qos is None or not qos.may_be_shed):
        return f"{name} has no loss graph"
    if node.shed_by == NEVER:
        return f"{name} says shed: never"
    if needs_whole_keys(node) and node.shed_by != KEYS:
        return f"each answer of {name} depends on all tuples of its key (shed: keys allows it)"
    return ""


def _with_grain(
    network: Network, blank: ValvePlace, starts: Sequence[str], nodes: Sequence[Node]
) -> ValvePlace:
    """The leftmost grain that keeps answers exact; if none does, tuples, where outputs may be approximate."""
    said = [node.shed_by for node in nodes if node.shed_by]
    groups = _whole_groups(network, blank, starts) if KEYS in said else None
    if groups is not None:
        return groups
    kept_exact = {
        grain: place
        for grain in (TUPLES, WINDOWS, KEYS)
        if (place := _exact(network, blank, starts, grain)) is not None
    }
    # A user's word goes first; else the order above decides, as smaller grains keep a share more evenly.
    for grain in said or kept_exact:
        if grain in kept_exact:
            return kept_exact[grain]
    if said and said[0] != TUPLES:
        why = f"boxes behind mix what shed: {said[0]} would keep apart"
        return replace(blank, why=why, wanted=said[0])
    return _approximate(network, blank, nodes)


def _row_grain(grain: str | None) -> str | None:
    """Slices and blocks are tuples, many at a time."""
    return TUPLES if grain in ("slices", "blocks") else grain


def _approximate(network: Network, blank: ValvePlace, nodes: Sequence[Node]) -> ValvePlace:
    strict = [node.name for node in nodes if node.qos is not None and not node.qos.approximate]
    if strict or any(needs_whole_keys(node) for node in nodes):
        name = strict[0] if strict else next(node.name for node in nodes if needs_whole_keys(node))
        why = f"'{name}' would get other answers than the exact ones (approximate: true in its qos allows it)"
        return replace(blank, why=why)
    return replace(
        _coarse(network, blank), exact=False, why="answers are computed from a part of their tuples"
    )


def _exact(network: Network, blank: ValvePlace, starts: Sequence[str], grain: str) -> ValvePlace | None:
    """The place with this grain, if each answer delivered is then one of the exact ones; else None."""
    if grain == TUPLES:
        # A join of fewer tuples gives fewer of the same pairs. Any other memory would count too few.
        subset = all(isinstance(node, Join) for node in _with_memory(network, starts))
        return _coarse(network, blank) if subset else None
    return _whole_windows(network, blank, starts) if grain == WINDOWS else _whole_keys(network, blank, starts)


def _with_memory(network: Network, starts: Iterable[str]) -> list[Node]:
    return [n for name in _behind(network, starts) if Trait.STATEFUL in (n := network.nodes[name]).traits]


def _first_with_memory(network: Network, starts: Iterable[str]) -> list[Node]:
    """The first box with memory on each path."""
    first, todo, seen = [], list(starts), set()
    while todo:
        name = todo.pop(0)
        if name in seen:
            continue
        seen.add(name)
        node = network.nodes[name]
        if Trait.STATEFUL in node.traits:
            first.append(node)
        else:
            todo += network.readers(name)
    return first


def _whole_windows(network: Network, blank: ValvePlace, starts: Sequence[str]) -> ValvePlace | None:
    first = _first_with_memory(network, starts)
    # With windows of two lengths no choice of tuples fills all of either.
    spans = {(n.size, n.step) for n in first if isinstance(n, Windowed) and has_time_windows(n)}
    # The same box may be both: one of its inputs comes through a window, the other does not.
    later = [n for each in first for n in _with_memory(network, network.readers(each.name))]
    if len(spans) != 1 or not all(has_time_windows(n) for n in first):
        return None
    # A reader of a point lags behind: it may close a window before it hears that the window has lost tuples.
    between = set(_behind(network, starts)) & reaching(network, [n.name for n in first])
    if any(Trait.KEPT in network.nodes[name].traits for name in between):
        return None
    # A window over answers of windows would miss those that were dropped.
    if not all(isinstance(n, Join) for n in later):
        return None
    size, every = spans.pop()
    assert isinstance(size, Time)
    assert isinstance(every, Time)
    # With gaps between windows, tuples in a gap would belong to none.
    whole = replace(blank, grain=WINDOWS, lot=_WINDOWS_LOT, size=size.us, every=every.us)
    return whole if every.us <= size.us else None


def _whole_keys(network: Network, blank: ValvePlace, starts: Sequence[str]) -> ValvePlace | None:
    """Whole keys: all boxes with memory must keep them apart, and no box may change them on the way."""
    memory = _with_memory(network, starts)
    parts = [
        node.partition_keys(index, network.types[up].keys) or ()
        for node in memory
        for index, up in enumerate(node.inputs)
        if _from(network, starts, node, up)
    ]
    shared = [key for key in (parts[0] if parts else ()) if all(key in keys for keys in parts)]
    tail = blank.at.partition("->")[0]
    keys = tuple(key for key in shared if key in network.types[tail].schema.names)
    behind = [network.nodes[name] for name in _behind(network, starts)]
    carried = all(_keeps(network, starts, node, key) for key in keys for node in behind)
    return replace(blank, grain=KEYS, lot=_KEYS_LOT, keys=keys) if keys and carried else None


def _keeps(network: Network, starts: Sequence[str], node: Node, key: str) -> bool:
    """Whether the key leaves a box under its name, with its values."""
    if not isinstance(node, Join):
        return node.carries((key,))
    # A pair shows the left column of a name that both sides have: only if the two are equal is it the key of
    # the right side too.
    hidden = key in network.types[node.inputs[0]].schema and (key, key) not in node.on
    return not (hidden and _from(network, starts, node, node.inputs[1]))


def _whole_groups(network: Network, blank: ValvePlace, starts: Sequence[str]) -> ValvePlace | None:
    """Whole groups of a feed: boxes with memory must keep its keys apart, or be for approximate outputs."""
    source = network.nodes[blank.at.partition("->")[0]]
    keys = (source.format.partitioned_by or ()) if isinstance(source, Source) else ()
    if not keys or blank.at != source.name:
        return None
    if not all(network.nodes[name].carries(keys) for name in _behind(network, starts)):
        return None
    mixing = [
        node.name
        for node in _with_memory(network, starts)
        for index, up in enumerate(node.inputs)
        if not set(keys) <= set(node.partition_keys(index, network.types[up].keys) or ())
    ]
    # A box that mixes groups still answers while some are gone, from a part of its tuples.
    behind = [network.nodes[name] for name in _behind(network, mixing)]
    if any(isinstance(n, Output | View) and (n.qos is None or not n.qos.approximate) for n in behind):
        return None
    return replace(blank, grain=KEYS, exact=not mixing)


def _from(network: Network, starts: Sequence[str], node: Node, up: str) -> bool:
    """Whether this input of a box brings tuples from behind the place."""
    return node.name in starts or up in _behind(network, starts)


def _coarse(network: Network, blank: ValvePlace) -> ValvePlace:
    """Tuples, or as many of them at once as the source allows: that saves most."""
    node = network.nodes[blank.at.partition("->")[0]]
    source = node if isinstance(node, Source) else _only_source(network, node)
    if source is None:
        return replace(blank, grain=TUPLES)
    return replace(blank, grain=source.format.shed_by, slice_bits=source.format.slice_bits)


def _only_source(network: Network, node: Node) -> Source | None:
    """The source whose tuples come here, if it is the only one and no box with memory lies between."""
    above = [network.nodes[name] for name in reaching(network, [node.name])]
    sources = [each for each in above if isinstance(each, Source)]
    direct = not any(Trait.STATEFUL in each.traits or Trait.KEPT in each.traits for each in above)
    return sources[0] if len(sources) == 1 and direct else None


def memory_behind(network: Network, at: str, output: str) -> int | None:
    """How long boxes between a place and an output remember, in microseconds; None: for ever.

    So long after a valve has opened, the answers of the output are exact again.
    """
    starts = [at.partition("->")[2]] if "->" in at else list(network.readers(at))
    between = set(_behind(network, starts)) & reaching(network, [output])
    longest: dict[str, int | None] = {}
    for name in (name for name in network.nodes if name in between):
        node = network.nodes[name]
        before = [longest[up] for up in node.inputs if up in longest]
        own = node.memory
        known = [each for each in before if each is not None]
        longest[name] = None if own is None or len(known) < len(before) else max(known, default=0) + own
    return longest.get(output, 0)
