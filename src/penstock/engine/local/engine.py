"""The reference engine: runs a network box by box in topological order, train after train.

It defines what a network means. Another engine is right if it gives the same rows (as multisets), however the
input is cut into trains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.engine.local.box_logics import logic_for
from penstock.engine.local.boxes.stateless import DropLogic
from penstock.engine.local.boxes.windows import TimeWindows
from penstock.engine.local.functions import table_of
from penstock.engine.local.rows import Answer, DeadLetter, Logic, Row, raw_text, visible
from penstock.engine.local.source import SourceLogic
from penstock.engine.local.valves import PlainValve, Valves
from penstock.model.boxes import Node, Output, Source, Trait
from penstock.model.checks.horizons import MIN, after, lift
from penstock.model.errors import PenstockError, did_you_mean
from penstock.model.formats.callback import Callback
from penstock.model.formats.memory import Memory
from penstock.model.types import SEQ
from penstock.model.writing.network import Network

Train = Mapping[str, Iterable[object]]
DropRates = Mapping[str, float]


@dataclass
class LocalResult:
    """What left: rows (visible columns) by output, by connection point or view, and the dead letters.

    `accounts`: what became of the tuples of each source: offered, let_in, dead, late, shed.
    """

    outputs: dict[str, list[Row]] = field(default_factory=dict)
    points: dict[str, list[Row]] = field(default_factory=dict)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    accounts: dict[str, Counter[str]] = field(default_factory=dict)


@dataclass
class _ArrowTrain:
    """What an arrow carries in this train, and the promise about later ones."""

    rows: list[Row]
    horizon: int
    idle: bool


class LocalEngine:
    """Runs one network. Step through it with `train` and `finish`, or hand all trains to `run`.

    >>> from penstock.model.formats.memory import memory
    >>> from penstock.model.formats.rows import rows
    >>> net = Network("speeds")
    >>> cars = net.source("cars", rows([], "time TIMESTAMP, spd INT"), timestamp="time")
    >>> jam = net.output("jam", cars.filter("spd < 40"), to=memory())
    >>> result = LocalEngine(net).run([{"cars": [{"time": 0, "spd": 10}, {"time": 1, "spd": 90}]}])
    >>> [row["spd"] for row in result.outputs["jam"]]
    [10]
    """

    def __init__(self, network: Network, *, clock: Callable[[], int] | None = None) -> None:
        self.network = network
        self.result = LocalResult()
        self.trains = 0
        self.valves = Valves(network)
        self.sources = {
            n.name: SourceLogic(n, clock) for n in network.nodes.values() if isinstance(n, Source)
        }
        self.logics = {n.name: self._logic(n) for n in network.nodes.values() if Trait.ENTERS not in n.traits}
        # A box promises what it promised before, even when an idle input wakes up behind it.
        self._promised = dict.fromkeys(network.nodes, MIN)
        for node in network.nodes.values():
            if node.traits & (Trait.KEPT | Trait.LEAVES):
                self._shelf(node)

    def run(
        self,
        trains: Sequence[Train],
        *,
        final: bool = True,
        drop_rates: DropRates | Sequence[DropRates] | None = None,
        valves: Sequence[Sequence[PlainValve]] = (),
    ) -> LocalResult:
        """All trains, then, if `final`, the end of input. `drop_rates`: for all trains, or one for each.

        `valves`: what the ticket of each train sheds, that of the end of input last.
        """
        shed = dict(enumerate(valves))
        for number, train in enumerate(trains):
            rates = drop_rates[number] if isinstance(drop_rates, Sequence) else drop_rates
            self.train(train, drop_rates=rates, valves=shed.get(number, ()))
        return self.train({}, final=True, valves=shed.get(len(trains), ())) if final else self.result

    def train(
        self,
        rows: Train,
        *,
        final: bool = False,
        drop_rates: DropRates | None = None,
        valves: Sequence[PlainValve] = (),
    ) -> LocalResult:
        """One train: rows by source name. Drop rates stay as set until they are set again, valves do not."""
        self._check_names(rows, self.sources, "source")
        self._set_rates(drop_rates or {})
        self.valves = Valves(self.network, valves)
        flows: dict[str, _ArrowTrain] = {}
        # Nodes stand in topological order: what feeds a box has run before it.
        for name, node in self.network.nodes.items():
            if Trait.ENTERS in node.traits:
                flows[name] = self._enter(name, rows.get(name, ()))
            else:
                flows[name] = self._through(node, [flows[tail] for tail in node.inputs], final=final)
        self.trains += 1
        return self.result

    def finish(self) -> LocalResult:
        """The end of input: every window is closed and nothing waits any more."""
        return self.train({}, final=True)

    def _enter(self, name: str, rows: Iterable[object]) -> _ArrowTrain:
        source = self.sources[name]
        arrived = source.arrived
        answer = source.take(rows, self.valves.at(name))
        late = sum(reason.startswith("late: ") for _, reason in answer.dead)
        counts = {"let_in": len(answer.out), "dead": len(answer.dead) - late, "late": late}
        account = self.result.accounts.setdefault(name, Counter())
        account.update(counts, offered=source.arrived - arrived, shed=answer.shed)
        self._bury(answer, name, name)
        return _ArrowTrain(answer.out, source.horizon, source.idle)

    def _through(self, node: Node, inputs: list[_ArrowTrain], *, final: bool) -> _ArrowTrain:
        idle = [flow.idle for flow in inputs]
        horizons = lift([flow.horizon for flow in inputs], idle)
        rows = [
            [row for row in flow.rows if self.valves.passes(tail, node.name, row)]
            for tail, flow in zip(node.inputs, inputs, strict=True)
        ]
        logic = self.logics[node.name]
        # Valves come anew with the ticket of each train, so the box must not keep those of the last one.
        if isinstance(logic, TimeWindows):
            logic.delivers = self.valves.telling(node.name)
        answer = logic.process(rows, horizons, final=final)
        self._bury(answer, self._source_of(node), node.name)
        if node.traits & (Trait.KEPT | Trait.LEAVES):
            self._deliver(node, answer.out)
        self._promised[node.name] = max(self._promised[node.name], after(node, horizons))
        return _ArrowTrain(answer.out, self._promised[node.name], all(idle))

    def _shelf(self, node: Node) -> list[Row]:
        shelves = self.result.outputs if Trait.LEAVES in node.traits else self.result.points
        return shelves.setdefault(node.name, [])

    def _deliver(self, node: Node, rows: list[Row]) -> None:
        shown = [visible(row) for row in rows]
        self._shelf(node).extend(shown)
        if isinstance(node, Output) and isinstance(node.to, Memory):
            node.to.rows.extend(shown)
        if isinstance(node, Output) and isinstance(node.to, Callback) and shown:
            node.to.function(table_of(shown, self.network.types[node.name].schema))

    def _bury(self, answer: Answer, source: str, box: str) -> None:
        for row, reason in answer.dead:
            self.result.dead_letters.append(
                DeadLetter(raw_text(row), reason, source, row[SEQ], box, self.trains)
            )

    def _source_of(self, node: Node) -> str:
        """The source of a box's tuples if it can only be one: tuples do not carry where they came from."""
        names, todo = set(), [node]
        while todo:
            one = todo.pop()
            if Trait.ENTERS in one.traits:
                names.add(one.name)
            todo += [self.network.nodes[tail] for tail in one.inputs]
        return names.pop() if len(names) == 1 else ""

    def _set_rates(self, rates: DropRates) -> None:
        drops = {name: logic for name, logic in self.logics.items() if isinstance(logic, DropLogic)}
        self._check_names(rates, drops, "drop box")
        for name, rate in rates.items():
            drops[name].rate = rate

    def _check_names(self, given: Iterable[str], known: Iterable[str], what: str) -> None:
        for name in given:
            if name not in known:
                raise PenstockError(
                    f"network '{self.network.name}' has no {what} '{name}'", hint=did_you_mean(name, known)
                )

    def _logic(self, node: Node) -> Logic:
        return logic_for(
            node, [self.network.types[tail] for tail in node.inputs], self.network.types[node.name]
        )
