"""Six networks to be killed: their input, their process, and what they must have given in the end.

`python jobs.py NAME FOLDER` runs one over the input in the folder, and ends with 0 when everything is
through. Trains are short, so that a run has many moments to be killed at.
"""

from __future__ import annotations

import json
import random
import sys
from abc import ABC, abstractmethod
from pathlib import Path

import penstock as ps
from engine.spark.valves.replay import check_accounts, log_of, replayed
from linear_road.golden_input import Case
from linear_road.road_run import answers, delivered, odd_rows
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.contract.valve import Valve, lot_of
from penstock.linear_road.network import road_network, road_runtime
from penstock.model.formats.description import SourceFormat
from penstock.standing import StandingQueries
from penstock.testing import assert_same_rows, rows_source
from runtime.streams import SCHEMA, local, parquet_rows, put
from soak import count
from standing.test_service import SLOW, rows, slow
from standing.test_service import network as standing_network

SECONDS = count(360, soak=1200)  # of data in each input
FILES = 4
TRAIN = 30  # tuples of each input in a train


class Job(ABC):
    """One network: `prepare` writes its input, `run` is the process, `check` compares the end with truth."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def prepare(self) -> None: ...

    @abstractmethod
    def run(self) -> None: ...

    @abstractmethod
    def check(self) -> None: ...


class FileJob(Job):
    """CSV files in, Parquet out; the reference engine knows the truth."""

    inputs: tuple[str, ...] = ("cars",)

    @abstractmethod
    def network(self, **sources: SourceFormat) -> ps.Network: ...

    def rows(self, name: str) -> list[tuple[int, int, int]]:
        dice = random.Random(name)
        return [(second, dice.randrange(5), dice.randrange(100)) for second in range(SECONDS)]

    def prepare(self) -> None:
        step = SECONDS // FILES
        for name in self.inputs:
            for number in range(FILES):
                put(self.folder / name, str(number), self.rows(name)[number * step : (number + 1) * step])

    def run(self) -> None:
        files = {name: ps.csv(str(self.folder / name), SCHEMA, settle="0") for name in self.inputs}
        with ps.Runtime(
            self.network(**files),
            checkpoint=self.folder / "checkpoint",
            once=True,
            close=True,
            policy=AsSoonAsPossible(TRAIN),
            partitions=2,
        ) as running:
            self.steer(running)
            running.wait()

    def steer(self, running: ps.Runtime) -> None:
        """Set levers while it runs."""

    def check(self) -> None:
        reference = self.network(**{name: rows_source(SCHEMA) for name in self.inputs})
        truth = local(reference, **{name: self.rows(name) for name in self.inputs}).outputs["out"]
        assert_same_rows(parquet_rows(self.folder / "out"), truth, "out")

    def to(self) -> object:
        return ps.parquet(str(self.folder / "out"))


class Tumble(FileJob):
    """Windows of a minute, behind a connection point."""

    def network(self, **sources: SourceFormat) -> ps.Network:
        net = ps.Network("tumble")
        cars = net.source("cars", sources["cars"], timestamp="time").filter("v < 95", name="valid")
        minutes = cars.group_by("k").tumble("1 minute", n="count(*)", total="sum(v)", name="minutes")
        point = minutes.connection_point("kept")
        point.filter("n > 1", name="busy").output("out", to=self.to())
        return net


class Latch(FileJob):
    """State that is kept for ever."""

    def network(self, **sources: SourceFormat) -> ps.Network:
        net = ps.Network("latch")
        cars = net.source("cars", sources["cars"], timestamp="time")
        best = cars.group_by("k").latch("10 seconds", best="max(v)", n="count(*)", name="best")
        best.output("out", to=self.to())
        return net


class Shedding(FileJob):
    """Valves that change with every train; the tickets on the reference engine know the truth."""

    def network(self, **sources: SourceFormat) -> ps.Network:
        net = ps.Network("shedding")
        cars = net.source("cars", sources["cars"], timestamp="time")
        cars.filter("v < 95", name="valid").output("some", to=ps.parquet(str(self.folder / "some")))
        windows = cars.group_by("k", name="by_k").tumble("10 seconds", n="count(*)", name="tens")
        windows.output("out", to=self.to())
        return net

    def steer(self, running: ps.Runtime) -> None:
        windows = {"lot": lot_of("cars"), "size": 10_000_000, "every": 10_000_000}

        def change(done: TrainDone) -> None:
            share = (0.7, 0.2, 1.0, 0.5)[done.ticket.train % 4]
            at_source = Valve("cars", share, "windows", **windows)
            running.set_valves("some", [at_source, Valve("cars->valid", share / 2, "windows", **windows)])

        running.on_train(change)

    def check(self) -> None:
        log = log_of(self.folder / "checkpoint", "some")
        step, rows = SECONDS // FILES, self.rows("cars")
        files = [str(self.folder / "cars" / f"{number}.csv") for number in range(FILES)]
        lines = {path: rows[at * step : (at + 1) * step] for at, path in enumerate(files)}
        truth = replayed(self.network(cars=rows_source(SCHEMA)), log, lines).outputs
        for name in ("some", "out"):
            assert_same_rows(parquet_rows(self.folder / name), truth[name], name)
        assert check_accounts(log, "cars", SECONDS) > 0


class DiffusedJoin(FileJob):
    """A join that is spread over two servers."""

    inputs = ("cars", "tolls")

    def network(self, **sources: SourceFormat) -> ps.Network:
        net = ps.Network("join")
        cars, tolls = (net.source(name, sources[name], timestamp="time") for name in self.inputs)
        pairs = cars.join(
            tolls,
            on="k",
            within=(4, 6),
            where="v <> v_right",
            distribution="auto",
            servers=2,
            sample="20 seconds",
            name="pairs",
        )
        pairs.select("time", "k", "v", "v_right", name="columns").output("out", to=self.to())
        return net


class Standing(Job):
    """Standing queries in each mode, registered by the first process and answered by the last."""

    answers = "answers.json"

    def prepare(self) -> None:
        step = SECONDS // FILES
        for number in range(FILES):
            put(self.folder / "cars", str(number), rows(number * step, step))
        put(self.folder / "tolls", "0", [(second, second % 5, second) for second in range(0, 40, 4)])

    def run(self) -> None:
        net, policy = standing_network(self.folder), AsSoonAsPossible(TRAIN)
        with ps.Runtime(net, checkpoint=self.folder / "checkpoint", policy=policy, partitions=2) as running:
            service = StandingQueries(running)
            if not service.list():
                for mode in ("P", "C", "NoMat"):
                    service.register(SLOW, mode=mode, client="test")
            assert running.wait_idle(240)
            given = {each["handle"]: service.invoke(each["handle"]).to_pylist() for each in service.list()}
            (self.folder / self.answers).write_text(json.dumps(given))

    def check(self) -> None:
        given = json.loads((self.folder / self.answers).read_text())
        # A process killed between two registrations leaves fewer of them, never more.
        assert 1 <= len(given) <= 3
        for handle, answer in given.items():
            assert sorted((row["k"], row["v"]) for row in answer) == slow(SECONDS - 1), handle


class Road(Job):
    """Linear Road's network; its oracle knows the truth."""

    def prepare(self) -> None:
        Case(self.folder).expected(odd_rows(11, seconds=count(240, soak=900)))
        delivered(self.folder / "rows.dat", self.folder)

    def run(self) -> None:
        net = road_network(None, self.folder / "in", self.folder / "answers")
        checkpoint = self.folder / "checkpoint"
        with road_runtime(net, checkpoint, once=True, close=True, train_length=TRAIN) as running:
            running.wait()

    def check(self) -> None:
        expected = (self.folder / "expected.csv").read_text().splitlines()
        assert answers(self.folder) == sorted(expected)


JOBS: dict[str, type[Job]] = {
    "tumble": Tumble,
    "latch": Latch,
    "shedding": Shedding,
    "join": DiffusedJoin,
    "standing": Standing,
    "linear_road": Road,
}

if __name__ == "__main__":
    JOBS[sys.argv[1]](Path(sys.argv[2])).run()
