"""Each partition keeps its worker; records find their partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.engine.spark.runs.own_workers import PhaseFunction, PinnedJob, Places
from penstock.engine.spark.session import cores_of

Records = Iterable[Any]


def phases() -> dict[str, PhaseFunction]:
    """Nested, so that they travel to the workers as they are: tests cannot be imported there."""

    def to_all(partition: int, _records: Records) -> Iterator[tuple[int, Any]]:
        import os

        for target in range(3):
            yield target, (partition, os.getpid())

    def again(partition: int, records: Records) -> Iterator[tuple[int, Any]]:
        mine = [body for _, body in records]
        for target in range(3):
            yield target, (partition, mine)

    def told(partition: int, records: Records) -> Iterator[tuple[int, Any]]:
        import os

        yield partition, (os.getpid(), sorted(body for _, body in records))

    return {"to_all": to_all, "again": again, "told": told}


def test_a_partition_keeps_its_worker(spark: Any) -> None:
    seen: dict[int, set[int]] = {0: set(), 1: set(), 2: set()}
    given = phases()
    for _ in range(6):
        job = PinnedJob(spark.sparkContext, (0, 1, 2))
        for partition, (pid, arrived) in job.run([given["to_all"], given["told"]]):
            assert sorted(sender for sender, _ in arrived) == [0, 1, 2]
            seen[partition] |= {pid, dict(arrived)[partition]}
        job.release()
    # The first place is shared with all other jobs of the session.
    assert [len(seen[partition]) for partition in (1, 2)] == [1, 1]
    assert not seen[1] & seen[2]


def test_records_go_through_many_phases(spark: Any) -> None:
    given = phases()
    job = PinnedJob(spark.sparkContext, (0, 1, 2))
    told = job.run([given["to_all"], given["again"], given["told"]])
    assert sorted(partition for partition, _ in told) == [0, 1, 2]
    for _, (_, arrived) in told:
        assert [sender for sender, _ in arrived] == [0, 1, 2]
        assert all(len(before) == 3 for _, before in arrived)
    job.release()


def test_a_job_of_one_phase(spark: Any) -> None:
    job = PinnedJob(spark.sparkContext, (0, 1, 2))
    assert {partition for partition, _ in job.run([phases()["told"]])} == {0, 1, 2}
    job.release()


def test_a_place_belongs_to_one_sub_network(spark: Any) -> None:
    """The shared session of the tests has two cores or more, so at least one can have places."""
    cores = max(2, cores_of(spark))
    first, second = (Places(spark, cores, stateful=True) for _ in range(2))
    taken = first.take()
    assert taken == first.take()
    assert set(taken) <= set(range(cores))
    if taken:  # networks of other tests may hold some
        assert second.take() == ()
    first.leave()
    assert Places(spark, cores, stateful=False).take() == ()
    assert Places(spark, cores + 1, stateful=True).take() == ()
    assert Places(None, cores, stateful=True).take() == ()
