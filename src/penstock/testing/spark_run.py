"""A network on the Spark engine with trains cut by hand: what `run_network(..., engine="spark")` calls.

Everything is what production runs: the connector of the rows, the conductor and its tickets, the body of
foreachBatch, stages, state, sinks. Only the streaming query around it is left out, which saves its start for
each of many small tests.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from penstock.connectors.contract import Input, Taken
from penstock.connectors.rows import RowsInput, RowsPosition
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.contract.valve import Valve, valve_places
from penstock.engine.local.engine import DropRates, LocalResult, Train
from penstock.engine.local.rows import DeadLetter
from penstock.engine.spark.jobs.forms import Form, form_of
from penstock.engine.spark.layout.plan import Layout
from penstock.engine.spark.session import local_session
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.engine.spark.trains.query_settings import QuerySettings
from penstock.model.boxes import Output, Source
from penstock.model.formats.memory import Memory
from penstock.model.formats.rows import Rows
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import split
from penstock.store.dead_letters import DeadLetters
from penstock.store.points.point import PointReader
from penstock.testing.dry_run import dry_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CutByHand(Input[RowsPosition]):
    """The production input of a source of given rows; each `take` asks for one train, even an empty one."""

    def __init__(self, source: Source, directory: Path, trains: Sequence[Sequence[Any]]) -> None:
        self._lengths = [len(rows) for rows in trains]
        given = Rows([row for rows in trains for row in rows], source.schema)
        self._input = RowsInput(replace(source, format=given), directory)
        self._input.patience = math.inf  # on a busy machine too, a train is as long as it is given
        self._next = 0

    def take(self, position: RowsPosition | None, limit: int) -> Taken:
        """The next train, whatever the limit."""
        del limit
        if self._next >= len(self._lengths):
            return Taken([], position, 0)
        length = self._lengths[self._next]
        self._next += 1
        taken = self._input.take(position, length) if length else Taken([], position, 0)
        assert taken.rows == length
        return replace(taken, more=True)


@dataclass(frozen=True)
class InForm:
    """All trains in one form, on a session; without one they run here and now."""

    form: Form | None
    session: SparkSession | None = None

    def always(self) -> Callable[[Ticket, Layout], Form] | None:
        """The form of every train, if it is given."""
        form = self.form
        return None if form is None else lambda _ticket, _layout: form


class Levers(TypedDict, total=False):
    """What is set while trains run: for all of them, or one for each train.

    `schemes`: of diffused joins. `valves`: what is shed from each train on; the last hold to the end.
    """

    drop_rates: DropRates | Sequence[DropRates] | None
    schemes: Sequence[Mapping[str, str]] | None
    valves: Sequence[Sequence[Valve]]


def run_on_spark(
    network: Network,
    trains: Sequence[Train],
    spark: SparkSession | InForm | None,
    *,
    final: bool = True,
    fuse: bool = True,
    partitions: int = 2,
    tickets: list[Ticket] | None = None,
    listen: Callable[[TrainDone], None] = lambda _done: None,
    **levers: Unpack[Levers],
) -> LocalResult:
    """Run the trains; the result looks like the local engine's.

    `spark`: a session, or `InForm`. Trains run in all forms in turn: state goes from one to the other.
    `tickets` gets the tickets of all trains: what they say was shed can be given to the reference engine.
    `listen` is called after each train.
    """
    given = spark if isinstance(spark, InForm) else InForm(None, spark or local_session())
    session = given.session
    chosen = given.always() or in_turn(sum(len(list(rows)) for rows in trains[0].values()) if trains else 0)
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        root = Path(folder)
        net, sinks = with_memory_sinks(network)
        started = time.time()
        accounts: dict[str, Counter[str]] = {}
        for sub in split(net):
            # The clock stands still: on a busy machine an input must not become idle between two trains.
            steering = Steering(AsSoonAsPossible(), clock=lambda: started)
            inputs: dict[str, Input[Any]] = {
                name: CutByHand(
                    net.sources[name], root / "given" / name, [list(t.get(name, ())) for t in trains]
                )
                for name in sub.inputs
                if name in net.sources
            }
            heard = partial(_add_accounts, accounts, listen)
            settings = QuerySettings(
                partitions, once=True, close=final, fuse=fuse, inputs=inputs, listen=heard, form=chosen
            )
            query = SubnetworkQuery(
                sub,
                session,  # type: ignore[arg-type]  # None: a dry run has no session
                root,
                steering,
                settings,
            )
            if session is None:
                query.trains.train_run = dry_job
            crank(query, **levers)
            if tickets is not None:
                known = (query.log.ticket(train) for train in range(query.last + 1))
                tickets += [ticket for ticket in known if ticket is not None]
        return replace(_result(root, net, sinks), accounts=accounts)


def in_turn(start: int) -> Callable[[Ticket, Layout], Form]:
    """All forms in turn, train by train."""
    forms = list(Form)

    def form(ticket: Ticket, layout: Layout) -> Form:
        if form_of(ticket, layout) is Form.FRAMES:
            return Form.FRAMES
        chosen = forms[(start + ticket.train) % len(forms)]
        return Form.TASKS if chosen is Form.FRAMES and layout.rooted else chosen

    return form


def _add_accounts(
    accounts: dict[str, Counter[str]], listen: Callable[[TrainDone], None], done: TrainDone
) -> None:
    for name, account in done.commit.accounts.items():
        accounts.setdefault(name, Counter()).update(asdict(account))
    listen(done)


def crank(query: SubnetworkQuery, **levers: Unpack[Levers]) -> None:
    """Run a sub-network's trains one after the other, here and now, until its input is used up."""
    while not query.finished.is_set():
        _steer(query, query.last + 1, levers)
        if query.next_ticket():
            query.run_train(query.last)


def _steer(query: SubnetworkQuery, number: int, levers: Levers) -> None:
    rates, schemes, valves = levers.get("drop_rates"), levers.get("schemes"), levers.get("valves", ())
    if isinstance(rates, Mapping):
        query.steering.drop_rates.update(rates)
    elif rates is not None and number < len(rates):
        query.steering.drop_rates.update(rates[number])
    if schemes is not None and number < len(schemes):
        query.steering.schemes = dict(schemes[number])
    if number < len(valves):
        query.steering.valves = tuple(v for v in valves[number] if v.at in valve_places(query.sub))


def with_memory_sinks(network: Network) -> tuple[Network, dict[str, Memory]]:
    """The same network with every output kept in a list."""
    sinks = {name: Memory() for name in network.outputs}
    nodes = [
        replace(node, to=sinks[node.name]) if isinstance(node, Output) else node
        for node in network.nodes.values()
    ]
    return Network.of(network.name, nodes, groups=network.groups), sinks


def _result(root: Path, net: Network, sinks: dict[str, Memory]) -> LocalResult:
    result = LocalResult(outputs={name: sink.rows for name, sink in sinks.items()})
    for name in net.points:
        names = list(net.types[name].schema.names)
        result.points[name] = PointReader(root, name).read().select(names).to_pylist()
    for row in DeadLetters(root).read().to_pylist():
        result.dead_letters.append(
            DeadLetter(
                row["raw"], row["reason"], row["source"] or "", int(row["offset"]), row["box"], row["train"]
            )
        )
    return result
