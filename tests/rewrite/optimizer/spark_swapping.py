"""Sub-networks on the Spark engine that change their form between trains, and are killed now and then.

As in production a swap keeps the form, then starts the query anew on the same folder; tickets, state and
files are those of every run. A kill is an exception that nothing catches, at a crash point of the engine:
whatever was in memory is gone, whatever was on disk stays. `tests/runtime/forms/test_swap_kills.py` does the
same to a real process with kill -9, but to one network only.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from unittest import mock

import pyarrow.parquet as pq

import penstock as ps
from penstock.engine.contract.steering import Steering
from penstock.engine.local.engine import LocalResult
from penstock.engine.local.rows import DeadLetter
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.engine.spark.trains.query_settings import QuerySettings
from penstock.model.boxes import Output, Source
from penstock.model.formats.rows import Rows
from penstock.model.writing.network import Network
from penstock.rewrite.forms import Form
from penstock.rewrite.subnetworks import SubNetwork, split
from penstock.runtime.box_facts import facts
from penstock.runtime.forms import Forms
from penstock.store.dead_letters import DeadLetters
from penstock.store.points.point import PointReader
from penstock.testing.dry_run import dry_job
from penstock.testing.spark_run import InForm, in_turn

POINTS = (
    "ticket-before-write",
    "ticket-after-write",
    "train-before-commit",
    "train-after-commit",
    "train-published",
    "form-kept",
)
_MODULES = ("query", "train")
_PARTITIONS = 2


class KilledError(BaseException):
    """Nothing may catch it."""


@dataclass
class Kill:
    """The `left`-th time that a point is reached, in whatever sub-network."""

    point: str
    left: int
    killed: int = 0

    def __call__(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                self.killed += 1
                raise KilledError

    @contextlib.contextmanager
    def armed(self):
        with contextlib.ExitStack() as stack:
            for module in _MODULES:
                name = f"penstock.engine.spark.trains.{module}.crash_point"
                stack.enter_context(mock.patch(name, self))
            yield self


@dataclass(frozen=True)
class Lengths:
    """A policy: trains of these lengths, again and again."""

    lengths: tuple[int, ...]

    def next_train(self, situation):
        return self.lengths[situation.train % len(self.lengths)]


@dataclass
class Moments:
    """What happens when. `forms`: before which train each sub-network changes to which form."""

    lengths: Lengths
    forms: dict[str, dict[int, Form]]
    kill: Kill
    swaps: int = 0
    refused: int = 0
    accounts: dict[str, Counter] = field(default_factory=dict)


def on_disk(network: Network, rows, folder: Path) -> Network:
    """The same network with these rows in its sources, and files at its ends: they outlive a kill."""

    def placed(node):
        if isinstance(node, Source):
            return replace(node, format=Rows(list(rows[node.name]), node.schema))
        return replace(node, to=ps.parquet(str(folder / node.name))) if isinstance(node, Output) else node

    nodes = [placed(node) for node in network.nodes.values()]
    return Network.of(network.name, nodes, groups=network.groups)


def run_swapping(network: Network, root: Path, spark, moments: Moments) -> LocalResult:
    """Run each sub-network to its end, through all swaps and kills."""
    given = spark if isinstance(spark, InForm) else InForm(None, spark)
    with moments.kill.armed():
        for sub in split(network):
            _run_sub(sub, root, given, moments)
    return _result(network, root, moments)


def _run_sub(sub: SubNetwork, root: Path, given: InForm, moments: Moments) -> None:
    forms, waiting, epoch = Forms(root), dict(moments.forms.get(sub.name, {})), 0
    while True:
        query = None
        try:
            query = _query(forms.begin(sub), root, given, moments, epoch)
            if _until_swap(query, waiting):
                break
            form = waiting.pop(min(waiting))
            if _facts(form.of(sub)) != _facts(query.sub):
                moments.refused += 1  # as `Runtime.rewrite` refuses it
                continue
            moments.swaps += 1
            forms.keep(sub, replace(form, newest=_newest(query)))
            moments.kill("form-kept")
        except KilledError:
            epoch += 1  # the next owner of the checkpoint
    for train in range(query.last + 1):
        for name, account in query.log.commit(train).accounts.items():
            moments.accounts.setdefault(name, Counter()).update(asdict(account))


def _until_swap(query: SubnetworkQuery, waiting) -> bool:
    """Run trains until the next swap is due; True: the input is used up."""
    query.publish_again()
    while not query.finished.is_set():
        if not query.drained():
            query.run_train(query.last)  # a kill has left it behind
        elif waiting and query.last + 1 >= min(waiting):
            return False
        elif query.next_ticket():
            query.run_train(query.last)
    return True


def _query(sub: SubNetwork, root: Path, given: InForm, moments: Moments, epoch: int) -> SubnetworkQuery:
    # The clock stands still: on a busy machine an input must not become idle between two trains.
    steering = Steering(moments.lengths, clock=lambda: 0.0)
    settings = QuerySettings(
        _PARTITIONS,
        once=True,
        close=True,
        epoch=epoch,
        follows_dead=True,
        form=given.always() or in_turn(len(sub.name)),
    )
    query = SubnetworkQuery(sub, given.session, root, steering, settings)
    if given.session is None:
        query.trains.train_run = dry_job
    return query


def _facts(sub: SubNetwork):
    return facts((sub,), _PARTITIONS, fuse=True)


def _newest(query: SubnetworkQuery):
    commit = query.log.commit(query.log.last_commit())
    return max(commit.newest.values(), default=None) if commit is not None else None


def _result(network: Network, root: Path, moments: Moments) -> LocalResult:
    result = LocalResult(outputs={name: _rows(node) for name, node in network.outputs.items()})
    for name in network.points:
        names = list(network.types[name].schema.names)
        result.points[name] = PointReader(root, name).read().select(names).to_pylist()
    result.dead_letters += [
        DeadLetter(each["raw"], each["reason"], each["source"] or "", int(each["offset"]), each["box"], 0)
        for each in DeadLetters(root).read().to_pylist()
    ]
    return replace(result, accounts=moments.accounts)


def _rows(output: Output):
    folder = Path(output.to.path)
    return [row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
