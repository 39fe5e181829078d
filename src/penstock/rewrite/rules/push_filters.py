"""Filters move towards the sources: what they throw away need not be worked on (A46).

A filter may pass in front of:

- a map, with the map's expressions in place of its columns; a function whose columns it does not read;
- a union or a group-by, as a copy on each input;
- a window, latch with aggregates or resample, if it reads keys only;
- a join, to the side whose columns it reads; to both sides, if it reads only columns that are equal.

If only some conjuncts may pass, they do and the others stay. What is passed must not fail: it would refuse
fewer tuples than as written. Nothing passes a point, or a box that others read too. A filter that passes a
box in use also stays behind it: its state holds tuples that the filter has not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Never, cast

from penstock.model.boxes import (
    Filter,
    GroupBy,
    Join,
    Latch,
    Map,
    Node,
    Resample,
    Slide,
    Trait,
    Tumble,
    Union,
    Windowed,
)
from penstock.model.checks.stream_types import join_names
from penstock.model.errors import ExpressionError
from penstock.model.expressions.expression import columns_of
from penstock.model.writing.network import Network
from penstock.rewrite.cost_model import CostModel
from penstock.rewrite.rules.conditions import exact_keys, never_fails, only_reader, reads_of, refuses_none
from penstock.rewrite.rules.edit import edited, free_name, reading
from penstock.rewrite.rules.step import Step
from penstock.rewrite.subnetworks import reaching
from penstock.rewrite.texts import all_of, conjuncts, renamed, substituted

Names = Mapping[str, str]
"""What stands for a column on the other side of a box: an expression."""


@dataclass(frozen=True)
class Part:
    """A conjunct (or a function) that a filter consists of, and the columns that it reads."""

    text: str
    reads: frozenset[str]


@dataclass(frozen=True)
class Passage:
    """How one part passes a box: for each input the new text, None where it does not go."""

    texts: tuple[str | None, ...]


def push_filters(network: Network, costs: CostModel) -> Iterator[Step]:
    """Each filter, or part of one, in front of the box that feeds it."""
    for filter_ in network.nodes.values():
        if not isinstance(filter_, Filter) or not never_fails(network, filter_):
            continue
        box = network.nodes[filter_.inputs[0]]
        # Other readers of the box must still get what the filter removes.
        if type(box) not in _PASSES or not only_reader(network, box.name, filter_.name):
            continue
        stays = _must_stay(box, filter_, costs)
        if not stays or _may_be_copied(network, box, filter_):
            yield from _pushed(network, filter_, box, stays=stays)


def _must_stay(box: Node, filter_: Filter, costs: CostModel) -> bool:
    """Whether the state of the box may hold tuples that the filter in front of it has not seen."""
    return box.name in costs.in_use and any((name, box.name) not in costs.settled for name in filter_.origins)


def _may_be_copied(network: Network, box: Node, filter_: Filter) -> bool:
    """Not twice, and not where the copy would change which keys a join looks up: state depends on them."""
    above = [network.nodes[name] for name in reaching(network, box.inputs)]
    if any(isinstance(node, Filter) and {*node.origins} & {*filter_.origins} for node in above):
        return False
    keyed = [node for node in above if Trait.KEPT in node.traits and getattr(node, "key", None)]
    return not (isinstance(box, Join) and keyed)


def _pushed(network: Network, filter_: Filter, box: Node, *, stays: bool) -> Iterator[Step]:
    passage = cast("Callable[[Network, Node, Part], Passage | None]", _PASSES[type(box)])
    parts = _parts(filter_)
    passages = {part: passage(network, box, part) for part in parts}
    moving = {part: way for part, way in passages.items() if way is not None}
    if not moving:
        return
    rest = [part.text for part in parts if part not in moving]
    try:
        copies = _copies(network, filter_, box, list(moving.values()), whole=not rest and not stays)
    except ExpressionError:
        return  # with the map's expressions in place of its columns, the predicate has grown too deep
    fed = tuple(copies[at].name if at in copies else tail for at, tail in enumerate(box.inputs))
    changed: list[Node] = [*copies.values(), replace(box, inputs=fed)]
    gone: list[str] = []
    # Three ends: the filter stays for what the box holds, its other parts stay, or nothing of it stays.
    if stays:
        changed.append(replace(filter_, origin=filter_.origins))
    elif rest:
        changed.append(replace(filter_, predicate=all_of(rest), origin=filter_.origins))
    else:
        changed = _merge_nodes(changed, reading(network, {filter_.name: box.name}))
        # If a copy took the filter's name, the filter has moved and nothing goes.
        gone = [filter_.name] * (filter_.name not in {copy.name for copy in copies.values()})
    result = edited(network, changed, gone)
    if result is not None:
        says = _says(filter_, box, copies, rest=bool(rest))
        yield Step(result, f"{says}, and stays behind it for what its state holds" if stays else says)


def _merge_nodes(changed: list[Node], readers: list[Node]) -> list[Node]:
    """Readers of the filter read the box now; the box itself has been changed already."""
    names = {node.name for node in changed}
    return [*changed, *(node for node in readers if node.name not in names)]


def _parts(filter_: Filter) -> list[Part]:
    if filter_.function is not None:
        return [Part("", frozenset(reads_of(filter_)))]
    return [Part(text, frozenset(columns_of(text))) for text in conjuncts(filter_.predicate)]


def _copies(
    network: Network, filter_: Filter, box: Node, passages: list[Passage], *, whole: bool
) -> dict[int, Filter]:
    """The filters in front, by input. A filter that moves as a whole to one input keeps its name."""
    goes = [at for at in range(len(box.inputs)) if any(way.texts[at] is not None for way in passages)]
    copies: dict[int, Filter] = {}
    for at in goes:
        texts = [text for way in passages if (text := way.texts[at]) is not None]
        taken = [copy.name for copy in copies.values()]
        name = f"{filter_.origins[-1]}_{box.inputs[at]}"
        copies[at] = replace(
            filter_,
            name=filter_.name if whole and len(goes) == 1 else free_name(network, name, taken),
            inputs=(box.inputs[at],),
            predicate="" if filter_.function is not None else all_of(texts),
            origin=filter_.origins,
        )
    return copies


def _says(filter_: Filter, box: Node, copies: Mapping[int, Filter], *, rest: bool) -> str:
    what = f"part of filter '{filter_.name}'" if rest else f"filter '{filter_.name}'"
    names = [copy.name for copy in copies.values()]
    where = f" as {' and '.join(repr(name) for name in names)}" if names != [filter_.name] else ""
    return f"{what} moves in front of {box.kind.replace('_', ' ')} '{box.name}'{where}"


# --- how a part passes a box ---


def _through_map(network: Network, box: Map, part: Part) -> Passage | None:
    if not never_fails(network, box):
        return None
    if box.function is not None:
        # Nobody can look into a function, so only a filter on columns that it leaves alone may pass.
        written = set(box.produces.names)
        stays = box.keep and not part.reads & written
        return Passage((part.text,)) if stays else None
    return _with(part, dict(box.columns), written={name for name, _ in box.columns}, keep=box.keep)


def _with(part: Part, columns: Names, *, written: set[str], keep: bool) -> Passage | None:
    """By substitution; a function needs its columns under their own names."""
    if part.text:
        return Passage((substituted(part.text, columns),))
    same = all(columns.get(name) in (name, f"`{name}`") for name in part.reads if name in written)
    return Passage(("",)) if same and (keep or part.reads <= written) else None


def _through_union(_network: Network, box: Union | GroupBy, part: Part) -> Passage:
    return Passage((part.text,) * len(box.inputs))


def _through_window(network: Network, box: Windowed | Latch | Resample, part: Part) -> Passage | None:
    inputs = network.input_types(box.name)
    keys, schema = inputs[0].keys, inputs[0].schema
    # In front of the box the filter sees 0.0 and -0.0; behind it only one of them, for the group of both.
    on_keys = bool(part.reads) and part.reads <= set(keys) and exact_keys(schema, keys)
    return Passage((part.text,) * len(inputs)) if on_keys and refuses_none(network, box) else None


def _through_join(network: Network, box: Join, part: Part) -> Passage | None:
    if not part.reads or not refuses_none(network, box) or box.inputs[0] == box.inputs[1]:
        return None
    left, right = (type_.schema for type_ in network.input_types(box.name))
    shown = {new: old for old, new in join_names(box, left, right)}
    # Only keys of one type: an expression may tell 1 from 1.0, though the two are equal.
    equal = [(a, b) for a, b in box.on if left.type_of(a) == right.type_of(b) and exact_keys(left, [a])]
    if part.reads <= set(left.names):
        return Passage((part.text, _renamed(part, dict(equal))))
    if part.reads <= shown.keys():
        own = _renamed(part, shown)
        # Keys of the right side are shown under `shown`, so two renamings lead to the left one.
        other = _renamed(part, {new: a for new, old in shown.items() for a, b in equal if b == old})
        return None if own is None else Passage((other, own))
    return None


def _renamed(part: Part, names: Names) -> str | None:
    """The part over columns of other names; None if one of its columns has none there."""
    if not part.reads <= names.keys():
        return None
    if not part.text:
        return "" if all(names[name] == name for name in part.reads) else None
    return substituted(part.text, renamed({name: names[name] for name in part.reads}))


_PASSES: dict[type[Node], Callable[[Network, Never, Part], Passage | None]] = {
    Map: _through_map,
    Union: _through_union,
    GroupBy: _through_union,
    Tumble: _through_window,
    Slide: _through_window,
    Latch: _through_window,
    Resample: _through_window,
    Join: _through_join,
}
