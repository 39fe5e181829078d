"""Too many open files, or no memory for the kernel: the run looks again, and no tuple is lost by that."""

from __future__ import annotations

import errno

import pytest

import penstock as ps
from connectors.test_inputs import put
from engine.spark.trains.test_express import deliver
from penstock.store import durable
from penstock.testing.columns import SCHEMA, decode
from penstock.testing.dry_run import DryRun


def short(*_args, **_more):
    raise OSError(errno.EMFILE, "too many open files")


class Once:
    """Fails at the first call, then does what it stands for."""

    def __init__(self, does):
        self.does, self.failed = does, False

    def __call__(self, *args, **more):
        if not self.failed:
            self.failed = True
            short()
        return self.does(*args, **more)


def lines(first, count):
    return "".join(f"{n},1,7,{n}\n" for n in range(first, first + count))


def network(folder, *, with_feed=False):
    """A folder of CSV files; with a feed in front of them where the test is about several inputs."""
    (folder / "in").mkdir(exist_ok=True)
    net, sink = ps.Network("short"), ps.memory()
    ends = []
    if with_feed:
        text = ps.feed(str(folder / "fed"), SCHEMA, decode=decode, keys="road")
        ends.append(net.source("fed", text, timestamp="second", whole=True, idle=None))
    ends.append(net.source("cars", ps.csv(str(folder / "in"), SCHEMA), timestamp="second"))
    both = ps.union(*ends) if with_feed else ends[0]
    both.filter("spd >= 0").output("out", to=sink)
    return net, sink


def speeds(sink):
    return sorted(row["spd"] for row in sink.rows)


def test_a_ticket_that_could_not_be_written_loses_nothing(tmp_path, monkeypatch):
    net, sink = network(tmp_path)
    put(tmp_path / "in" / "a.csv", lines(0, 20), 100)
    run = DryRun(net, tmp_path / "checkpoint")
    monkeypatch.setattr(run.query.log, "write_ticket", Once(run.query.log.write_ticket))
    assert not run.query._ticket_written()
    run.run_all()
    assert speeds(sink) == list(range(20))


def test_one_that_is_on_disk_nevertheless_is_the_one_that_runs(tmp_path, monkeypatch):
    """Its name was there before the flush of its folder failed: another one could not take its place."""
    net, sink = network(tmp_path)
    put(tmp_path / "in" / "a.csv", lines(0, 20), 100)
    run = DryRun(net, tmp_path / "checkpoint", sync=True)

    class Layer(durable.FileLayer):
        failed = False

        def sync_directory(self, path):
            if path.name == "trains" and not self.failed:
                self.failed = True
                short()
            super().sync_directory(path)

    monkeypatch.setattr(durable, "layer", Layer())
    assert not run.query._ticket_written()
    assert run.query.log.last() == 0
    put(tmp_path / "in" / "b.csv", lines(20, 5), 101)
    run.run_all()
    assert speeds(sink) == list(range(25))
    assert run.query.log.ticket(0).rows == 20


def test_what_one_input_gave_is_not_lost_with_the_next_one(tmp_path, monkeypatch):
    net, sink = network(tmp_path, with_feed=True)
    deliver(tmp_path / "fed", 5, ["1,7,30", "1,8,50"])
    put(tmp_path / "in" / "a.csv", lines(0, 3), 100)
    run = DryRun(net, tmp_path / "checkpoint")
    cars = run.query.inputs["cars"]
    monkeypatch.setattr(cars, "take", Once(cars.take))
    assert not run.query._ticket_written()
    run.run_all()
    assert speeds(sink) == [0, 1, 2, 30, 50]


@pytest.mark.parametrize("what", ["waiting", "take"])
def test_the_conductor_goes_on_looking(tmp_path, monkeypatch, what):
    net, sink = network(tmp_path)
    put(tmp_path / "in" / "a.csv", lines(0, 3), 100)
    run = DryRun(net, tmp_path / "checkpoint")
    looks = []

    def look(*_args):
        looks.append(what)
        if len(looks) == 3:
            run.query._stop.set()
        short()

    with monkeypatch.context() as patch:
        patch.setattr(run.query.inputs["cars"], what, look)
        run.query._conduct()
    assert run.query.failure is None
    run.run_all()
    assert speeds(sink) == [0, 1, 2]
