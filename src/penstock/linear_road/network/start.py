"""Running the network: a runtime with the right trains, the warm-up, and what a run leaves behind."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

import penstock as ps
from penstock.linear_road.drive.clock import CLOCK_FILE, MAXIMUM, Clock
from penstock.linear_road.drive.slices import Slice
from penstock.linear_road.drive.targets import DirectoryTarget
from penstock.linear_road.network.road import DELAYS, road_network
from penstock.linear_road.rows import csv_rows
from penstock.linear_road.rows.arrays import Int32s
from penstock.linear_road.rows.inputs import Delivery
from penstock.linear_road.rows.packed_rows import join_shifted, pack
from penstock.model.formats.feed import place_of
from penstock.store.dead_letters import DeadLetters
from penstock.store.durable import Durability, make_directory
from penstock.store.file_names import delivered_file

LENGTH = 4_000_000
"""Most tuples of a train: some seconds of the largest runs, so that few trains work off a backlog."""

ONE_TASK = 30_000
"""Up to so many tuples a train is one task: the boxes are over with them sooner than a shuffle is."""


class Session(Protocol):
    """A Spark session, as far as a run touches it."""

    def stop(self) -> None: ...


def road_runtime(  # noqa: PLR0913 - options of `Runtime`, passed on
    net: ps.Network,
    checkpoint: Path,
    *,
    spark: Session | None = None,
    partitions: int = 2,
    once: bool = False,
    close: bool = False,
    train_length: int = LENGTH,
    master: str | None = None,
    take_over: bool = False,
    durability: Durability = "process",
    recovery: str | float | None = None,
    interval: float = 0.0,
    control: ps.Control | None = None,
) -> ps.Runtime:
    """A `Runtime` (not started) for `net`: trains of whole seconds, as soon as there are any.

    `once`: take what has been delivered, then end (`wait`); otherwise run until stopped. `close`: nothing
    more will be delivered. `spark`: a session;
    by default `penstock.engine.spark.session.local_session` makes one. `train_length`: the most tuples in a
    train, but at least one second. `recovery`: as of `Runtime`; whoever fills the feed must then leave its
    files until no train needs them any more (`TrainDone.needed`). `interval`: seconds between the departures
    of two trains at least, unless a backlog fills them. `control`: under overload it leaves out
    whole groups of expressways.
    """
    from penstock.runtime import AsSoonAsPossible  # needs Spark, which drawing the network does not

    # Packed trains are jobs of tasks, however long they are.
    policy = AsSoonAsPossible(
        train_length, interval, job_tuples=train_length, one_task_tuples=ONE_TASK, full_at_once=True
    )
    return ps.Runtime(
        net,
        spark,  # type: ignore[arg-type]  # of a Spark session this room knows only that it can be stopped
        checkpoint,
        once=once,
        close=close,
        policy=policy,
        partitions=partitions,
        master=master,
        take_over=take_over,
        durability=durability,
        recovery=recovery,
        control=control,
    )


def warm_up(
    spark: Session,
    *,
    partitions: int = 2,
    trains: int = 20,
    rows: int = 5000,
    delivery: Delivery = "text",
) -> float:
    """Run a synthetic city through the network in a scratch directory; returns the seconds it took.

    Afterwards the JVM has compiled what it will, and the workers have loaded their kernels from numba's
    cache.
    """
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="penstock-warm-up-") as scratch:
        folder = Path(scratch)
        deliver(folder / "in", warm_rows(partitions, trains, rows), delivery)
        net = road_network(None, folder / "in", folder / "answers")
        with road_runtime(
            net,
            folder / "checkpoint",
            spark=spark,
            partitions=partitions,
            once=True,
            close=True,
            # One second a train: what warms up is the number of trains, not of rows.
            train_length=1,
        ) as run:
            run.wait()
    return time.perf_counter() - begun


def warm_rows(groups: int, seconds: int, rows: int) -> Iterator[tuple[int, list[Int32s]]]:
    """(second, rows of each group): vehicles that drive on, requests of each type."""
    vehicle = np.arange(rows)
    for i in range(seconds):
        # In steps of ten seconds, the vehicles of a train last reported three trains ago, and every sixth
        # train ends a minute.
        t = i * 10
        groups_rows = []
        for group in range(groups):
            fields = np.full((rows, csv_rows.FIELDS), -1, np.int32)
            pos = (vehicle * 97 + t * 60) % 528_000
            fields[:, 0] = np.where(vehicle % 100 < 96, 0, vehicle % 100 - 95)
            fields[:, 0] = np.where(fields[:, 0] == 1, 2, fields[:, 0])
            fields[:, 1], fields[:, 2], fields[:, 3] = t, vehicle + rows * (3 * group + i % 3), vehicle % 60
            fields[:, 4], fields[:, 5], fields[:, 6] = group, 1 + vehicle % 3, vehicle % 2
            fields[:, 7], fields[:, 8], fields[:, 9] = pos // 5280, pos, i * rows + vehicle
            fields[:, 10], fields[:, 11], fields[:, 12] = vehicle % 100, (vehicle * 7) % 100, 1 + vehicle % 7
            fields[:, 13], fields[:, 14] = 1 + vehicle % 1440, 1 + vehicle % 69
            groups_rows.append(fields)
        yield t, groups_rows


def deliver(
    directory: Path, seconds: Iterator[tuple[int, list[Int32s]]], delivery: Delivery = "text"
) -> None:
    """Deliver all seconds at once, as a driver at maximum speed does."""
    make_directory(directory)
    Clock(time.time(), 0, MAXIMUM).save(directory / CLOCK_FILE)
    target = DirectoryTarget(directory)
    for second, groups in seconds:
        texts = [csv_rows.render(rows)[0] for rows in groups]
        if delivery == "packed":
            slices = [Slice(*join_shifted([pack(text, second)], [(0, 0, 0)])) for text in texts]
        else:
            slices = [Slice(text, len(rows)) for text, rows in zip(texts, groups, strict=True)]
        target.stage(second, slices)
        target.deliver()


def dead_letters(checkpoint: Path) -> Iterator[tuple[str, str, int, str]]:
    """(reason, source, line, raw) of every refused row.

    `source` is the delivered file, and `line` counts from 1 in it.
    """
    for letter in DeadLetters(checkpoint).read().to_pylist():
        second, group, line = place_of(int(letter["offset"]))
        yield letter["reason"], delivered_file(second, group, "csv"), line + 1, letter["raw"]


def answer_files(answers: Path) -> Iterator[Path]:
    """The finished answer files of all outputs, in the order of trains.

    An existing file never changes.
    """
    files = [file for name in DELAYS for file in (answers / name).glob("part-*.csv")]
    # A name ends with the numbers of train and partition.
    return iter(sorted(files, key=lambda file: (file.name.split("-")[-2:], file.parent.name)))
