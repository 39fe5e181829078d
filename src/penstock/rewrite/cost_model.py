"""What a network costs: CPU of each tuple in each box, from measured figures or from the defaults below.

Rates flow from the sources through the selectivities of the boxes (A46, A62). Figures are kept by the name
under which a box was written: a box that a rule made knows those names (`origin`). Only differences between
two forms of one network count, so the defaults need not be exact; what they must get right is the order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import log, prod

from sqlglot import exp

from penstock.model.boxes import Drop, Filter, GroupBy, Join, Latch, Map, Node, Slide, Trait, Union, Windowed
from penstock.model.costs import MeasuredBox, MeasuredCosts
from penstock.model.durations import Time
from penstock.model.expressions.binding import parse
from penstock.model.writing.network import Network
from penstock.rewrite.texts import conjuncts, operations, uses

# Microseconds of CPU, on the machine of docs/performance.md unless said otherwise. Guesses are round numbers.
COLUMN = 0.065  # a column of a tuple on its way into Python; measured: 15 columns cost 0.97
BOX = 0.02  # a box of expressions by itself; a guess
OPERATION = 0.01  # an operation of an expression; a guess
FUNCTION = 1.0  # a user's function; a guess, measure it
READ = 0.1  # a tuple out of the files of a connection point; a guess
KINDS = {"tumble": 0.3, "slide": 0.3, "latch": 0.3, "resample": 1.0, "join": 1.0, "column_latch": 1.0}
FUNCTION_SHARE = 0.5  # what a user's predicate lets through
WINDOW_SHARE = 0.1  # rows of a window for each tuple
JOIN_SHARE = 0.5  # pairs of a join for each tuple of the slower side
LEAST = 1e-9
LEAST_FLOW = 1e-6  # of what the sources give


@dataclass(frozen=True)
class CostModel:
    """The figures by which the rules choose.

    `boxes`: measured figures by the name of the box as written (see `control.costs`). `rates`: tuples a
    second of each source, 1 unless given. `pairs`: for each join, pairs for each two tuples that could meet.
    `written`: the predicates as written; a part of one lets more through than the whole. `in_use`: boxes
    whose state holds tuples already; what they get keeps its columns, and a filter that moves in front of one
    also stays behind it. `settled`: (filter, box) for which it need not stay any longer. `cost_model` fills
    all of it.
    """

    boxes: Mapping[str, MeasuredBox] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    pairs: Mapping[str, float] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    in_use: frozenset[str] = frozenset()
    settled: frozenset[tuple[str, str]] = frozenset()

    def total(self, network: Network) -> float:
        """Microseconds of CPU a second at these rates."""
        return sum(self.by_box(network).values())

    def by_box(self, network: Network) -> dict[str, float]:
        """The same for each node."""
        flows = self.flows(network)
        return {
            node.name: sum(flows[tail] for tail in node.inputs) * self.logic(node)
            + sum(flows[tail] * self._way_in(network, node, tail) for tail in node.inputs)
            for node in network.nodes.values()
            if node.is_box
        }

    def flows(self, network: Network) -> dict[str, float]:
        """Tuples a second that leave each node."""
        flows = {name: self.rates.get(name, 1.0) for name, node in network.nodes.items() if not node.inputs}
        # Where nothing came so far, something may. Behind a flow of 0 all forms would cost the same, and
        # rules that go by cost could undo each other for ever.
        least = LEAST_FLOW * (sum(flows.values()) or 1.0)
        for node in network.nodes.values():
            if node.inputs:
                flows[node.name] = max(least, self._out(node, [flows[tail] for tail in node.inputs]))
        return flows

    def _out(self, node: Node, inputs: list[float]) -> float:
        if isinstance(node, Join):
            # Pairs grow with both rates, so a filter in front of either side saves some. Without a figure,
            # the slower side is the limit.
            slow, fast = sorted(inputs)
            return self.pairs[node.name] * slow * fast if node.name in self.pairs else JOIN_SHARE * slow
        return sum(inputs) * self.selectivity(node)

    def rank(self, node: Node) -> float:
        """(1 - selectivity) / cost: of two boxes that commute, the one with more goes first (A46)."""
        return (1 - min(1.0, self.selectivity(node))) / max(self.logic(node), LEAST)

    def selectivity(self, node: Node) -> float:
        """Tuples out for each tuple in: measured, or by rule of thumb."""
        known = {name: self._box(name).selectivity for name in node.origins}
        missing = [name for name, share in known.items() if share is None]
        if len(missing) == len(known) or not all(name in self.written for name in missing):
            return _default_share(node)
        guessed = [predicate_share(self.written[name]) for name in missing]
        given = [share for share in known.values() if share is not None]
        return float(prod([*given, *guessed]) ** self._part(node))

    def _part(self, node: Node) -> float:
        """How much of the predicates as written a filter still holds: 1 for all, towards 0 for none."""
        texts = [self.written[name] for name in node.origins if name in self.written]
        if not isinstance(node, Filter) or not node.predicate or len(texts) < len(node.origins):
            return 1.0
        # Shares of conjuncts multiply, so their logarithms add up: the part is a share of the sum.
        whole = log(prod(predicate_share(text) for text in texts) or LEAST)
        return log(predicate_share(node.predicate) or LEAST) / whole if whole else 1.0

    def logic(self, node: Node) -> float:
        """Microseconds for a tuple inside the box: measured, or the default of its kind."""
        measured = self._measured(node)
        return _default(node) if measured is None else measured

    def _measured(self, node: Node) -> float | None:
        """Boxes in one work one behind the other: the next sees what the one before let through.

        Of several filters in one, those that were not measured count by default. The whole by default might
        be more than its parts, and boxes would stay apart that are cheaper as one.
        """
        total, share, measured = 0.0, 1.0, False
        for name in node.origins:
            box, text = self._box(name), self.written.get(name, "")
            cpu = cpu_a_tuple(box)
            measured = measured or cpu is not None
            if cpu is None:
                if not isinstance(node, Filter) or not text:
                    return None
                cpu = BOX + OPERATION * _predicate_operations(text)
            total += share * cpu
            share *= (
                box.selectivity if box.selectivity is not None else predicate_share(text) if text else 1.0
            )
        return total if measured else None

    def _box(self, name: str) -> MeasuredBox:
        return self.boxes.get(name, MeasuredBox(name))

    def _way_in(self, network: Network, node: Node, tail: str) -> float:
        """What a tuple costs before the box sees it: out of a point's files, and into Python."""
        before = network.nodes[tail]
        cost = READ * _looked_up(before, node) if Trait.KEPT in before.traits else 0.0
        if enters_python(network, node, before):
            cost += COLUMN * len(network.types[tail].schema.names)
        return cost


def cpu_a_tuple(box: MeasuredBox) -> float | None:
    """Microseconds of CPU for a tuple, in trains as long as those that were measured; None if not known."""
    if box.cpu is None or not box.tuples_in or not box.trains:
        return None
    length = box.tuples_in / box.trains
    seconds = box.cpu.at(length) / length
    return seconds * 1e6 if seconds > 0 else None


def cost_model(
    network: Network,
    measured: MeasuredCosts | None = None,
    rates: Mapping[str, float] | None = None,
    in_use: frozenset[str] = frozenset(),
    settled: frozenset[tuple[str, str]] = frozenset(),
) -> CostModel:
    """The costs of a network as written, with what its joins give at these rates."""
    written = {n.name: n.predicate for n in network.nodes.values() if isinstance(n, Filter) and n.predicate}
    costs = CostModel((measured or MeasuredCosts()).boxes, rates or {}, {}, written, in_use, settled)
    # Measured figures say how many pairs left. Divided by both rates that holds for other rates too.
    flows = costs.flows(network)
    pairs = {}
    for node in network.nodes.values():
        if isinstance(node, Join):
            left, right = (flows[tail] for tail in node.inputs)
            share = costs.boxes.get(node.name, MeasuredBox(node.name)).selectivity
            out = JOIN_SHARE * min(left, right) if share is None else share * (left + right)
            pairs[node.name] = out / max(left * right, LEAST)
    return replace(costs, pairs=pairs)


def _default_share(node: Node) -> float:
    if isinstance(node, Drop):
        return 1 - node.rate
    if isinstance(node, Filter):
        return predicate_share(node.predicate) if node.function is None else FUNCTION_SHARE
    windowed = isinstance(node, Windowed) or (isinstance(node, Latch) and node.function is None)
    return WINDOW_SHARE if windowed else 1.0


def _default(node: Node) -> float:
    if node.user_function is not None:
        return FUNCTION
    if isinstance(node, Filter):
        return BOX + OPERATION * _predicate_operations(node.predicate)
    if isinstance(node, Map):
        return BOX + OPERATION * sum(operations(text) for _, text in node.columns)
    if isinstance(node, Union | GroupBy):
        return OPERATION
    if isinstance(node, Slide) and isinstance(node.size, Time) and isinstance(node.every, Time):
        # A tuple is in this many windows at once.
        return KINDS["slide"] * max(1.0, node.size.us / node.every.us)
    return KINDS.get(node.kind, BOX)


def _predicate_operations(predicate: str) -> float:
    """AND looks at its right side only where the left one is true."""
    total, share = 0.0, 1.0
    for part in conjuncts(predicate):
        total += share * operations(part)
        share *= predicate_share(part)
    return total


def enters_python(network: Network, node: Node, before: Node) -> bool:
    """Whether tuples cross into Python here: for state by a shuffle, for a function unless they are there."""
    if Trait.STATEFUL in node.traits:
        return True
    return node.user_function is not None and not _in_python(network, before)


def _in_python(network: Network, node: Node) -> bool:
    """Whether a box runs in Python: it needs it, or all that feeds it is there."""
    if not node.is_box:
        return False
    if Trait.STATEFUL in node.traits or node.user_function is not None:
        return True
    return all(_in_python(network, network.nodes[tail]) for tail in node.inputs)


def _looked_up(point: Node, reader: Node) -> float:
    """The share of a point's files that a reader opens: a filter on the storage key skips others (A49)."""
    key = getattr(point, "key", None)
    if key is None or not isinstance(reader, Filter) or not reader.predicate:
        return 1.0
    return prod(predicate_share(part) for part in conjuncts(reader.predicate) if uses(part) == (key,))


@lru_cache(maxsize=4096)
def predicate_share(predicate: str) -> float:
    """The share of tuples that pass, as System R guessed it: a tenth for =, a third for <, and so on.

    >>> predicate_share("a = 1"), round(predicate_share("a = 1 OR b < 2"), 2)
    (0.1, 0.4)
    """
    return _share(parse(predicate))


def _share(tree: exp.Expression) -> float:
    if isinstance(tree, exp.Paren):
        return _share(tree.this)
    if isinstance(tree, exp.Not):
        return 1 - _share(tree.this)
    if isinstance(tree, exp.And):
        return _share(tree.this) * _share(tree.expression)
    if isinstance(tree, exp.Or):
        one, other = _share(tree.this), _share(tree.expression)
        return one + other - one * other
    if isinstance(tree, exp.In):
        return min(0.5, 0.1 * len(tree.expressions))
    return next((share for kinds, share in _SHARES if isinstance(tree, kinds)), 0.5)


_SHARES: tuple[tuple[tuple[type[exp.Expression], ...], float], ...] = (
    ((exp.EQ, exp.NullSafeEQ, exp.Is), 0.1),
    ((exp.NEQ,), 0.9),
    ((exp.LT, exp.LTE, exp.GT, exp.GTE), 1 / 3),
    ((exp.Between, exp.Like, exp.RegexpLike), 0.25),
)
