"""Random streams for diffused joins, the nested-loop truth, Arrow servers behind the reference's proxy."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from penstock.engine.arrow.boxes.diffused_join import OWNER
from penstock.engine.arrow.logic import logic_for
from penstock.engine.local import LocalEngine
from penstock.engine.local.boxes.diffused_join import DiffusedJoin
from penstock.engine.local.rows import Answer
from penstock.model.boxes import Join
from penstock.model.diffused.roles import step
from penstock.model.types import arrow_schema
from penstock.model.writing.network import Network
from penstock.testing import collect, rows_source

SCHEMA = "time TIMESTAMP, k INT, v INT"
PREDICATES = {
    "": lambda a, b: True,
    "abs(v - v_right) <= 3": lambda a, b: abs(a - b) <= 3,
    "v < v_right": lambda a, b: a < b,
    "v % 3 <> v_right % 2": lambda a, b: a % 3 != b % 2,
}


@dataclass(frozen=True)
class World:
    """A join and its trains; `forced` is the scheme asked for after each train (None: as measured)."""

    network: Network
    trains: list[dict[str, list[tuple[Any, ...]]]]
    forced: list[str | None]
    within: tuple[int, int]
    on: bool
    where: str

    def truth(self) -> Counter:
        """Every pair of all rows, by two loops."""
        rows = {side: [row for train in self.trains for row in train[side]] for side in ("left", "right")}
        after, before = self.within
        return Counter(
            (a, b)
            for a in rows["left"]
            for b in rows["right"]
            if -before <= b[0] - a[0] <= after
            and (not self.on or a[1] == b[1])
            and PREDICATES[self.where](a[2], b[2])
        )

    def pairs(self, rows: list[dict[str, Any]]) -> Counter:
        """The output in the form of the truth."""
        return Counter(
            (
                (_seconds(r["time"]), r["k"], r["v"]),
                (_seconds(r["time_right"]), r.get("k_right", r["k"]), r["v_right"]),
            )
            for r in rows
        )


def _seconds(time: Any) -> int:
    return round(time.timestamp())


def network(within, on, where, lateness="0 seconds", **spread: Any) -> Network:
    net = Network("two")
    left, right = (
        net.source(n, rows_source(SCHEMA), timestamp="time", lateness=lateness) for n in ("left", "right")
    )
    joined = left.join(right, on=["k"] if on else [], within=within, where=where, name="pairs", **spread)
    joined.output("out", to=collect())
    return net


@st.composite
def worlds(draw, *, forced: bool = True, late: bool = False, most: int = 40):
    """Skewed keys, uneven rates that change, disorder, any cutting, any number of switches at any moment."""
    within = draw(st.tuples(st.sampled_from([0, 2, 7]), st.sampled_from([0, 3, 6])))
    on, where = draw(st.booleans()), draw(st.sampled_from(list(PREDICATES)))
    distribution = draw(st.sampled_from(["diffused", "auto"]))
    disorder = draw(st.integers(0, 4))
    net = network(
        within,
        on,
        where,
        lateness=0 if late else disorder,
        distribution=distribution,
        servers=draw(st.integers(1, 4)),
        master=draw(st.sampled_from(["higher", "lower", "left", "right"])),
        placement=draw(st.sampled_from(["least_loaded", "round_robin"])),
        sample=draw(st.integers(1, 10)),
        threshold=draw(st.sampled_from([None, 0.3, 0.6])),
    )
    ticks = draw(
        st.lists(
            st.tuples(st.sampled_from("llrrlr"), st.integers(0, 2), st.integers(0, disorder)), max_size=most
        )
    )
    now, trains = 10, [{"left": [], "right": []}]
    for side, step_, back in ticks:
        if draw(st.integers(0, 5)) == 0:
            trains.append({"left": [], "right": []})
        now += step_
        row = (now - back, draw(st.sampled_from([1, 1, 1, 2, 3])), draw(st.integers(0, 9)))
        trains[-1]["left" if side == "l" else "right"].append(row)
    schemes = ["left", "right", None] + (["hash"] if on else [])
    asked = [draw(st.sampled_from(schemes)) if forced else None for _ in trains]
    return World(net, trains, asked, within, on, where)


class ArrowServers(DiffusedJoin):
    """The reference's proxy in front of vectorised servers: what Spark does, without Spark."""

    def __init__(self, node, inputs, output):
        super().__init__(node, inputs, output)
        self.schemas = [arrow_schema(stream.schema).append(pa.field(OWNER, pa.int32())) for stream in inputs]
        self.made = [logic_for(node, inputs, output) for _ in self.servers]

    def process(self, inputs, horizons, *, final):
        sent, answer = self._route(inputs), Answer()
        for server, logic in enumerate(self.made):
            logic.steer(self.roles, server)
            tables = [self._table(sent[server], side) for side in (0, 1)]
            found = logic.process(tables, horizons, final=final)
            answer.out += found.out.to_pylist()
            answer.dead += [({"_seq": row["offset"]}, row["reason"]) for row in found.dead.to_pylist()]
        reached = self.made[0].gate.acted.values
        self.reports = [logic.report for logic in self.made]
        self.roles = step(self.node, self.roles, self.reports, reached, self.forced)
        return answer

    def _table(self, came, side):
        rows = [{**held.row, OWNER: held.owner} for s, held in came if s == side]
        return pa.Table.from_pylist(rows, schema=self.schemas[side])


class LoopsEngine(LocalEngine):
    """The reference engine with servers in plain loops, also where it would answer without servers."""

    def _logic(self, node):
        if isinstance(node, Join):
            types = [self.network.types[tail] for tail in node.inputs]
            return DiffusedJoin(node, types, self.network.types[node.name])
        return super()._logic(node)


class ArrowEngine(LocalEngine):
    """The reference engine with Arrow servers in its joins."""

    def _logic(self, node):
        if isinstance(node, Join):
            types = [self.network.types[tail] for tail in node.inputs]
            return ArrowServers(node, types, self.network.types[node.name])
        return super()._logic(node)


def run(engine: LocalEngine, world: World) -> LocalEngine:
    """All trains; after each the next scheme is asked for."""
    for train, forced in zip(world.trains, world.forced, strict=True):
        engine.logics["pairs"].forced = forced
        engine.train(train)
    engine.finish()
    return engine
