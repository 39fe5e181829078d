"""Which train a micro-batch of Spark's is for, whatever happened before."""

from __future__ import annotations

import pytest

from penstock.engine.spark.trains.ticks import first_train


@pytest.fixture
def spark_log(tmp_path):
    """Write Spark's log as it would stand: micro-batches planned, micro-batches committed."""

    def write(offsets, commits):
        for folder, count in (("offsets", offsets), ("commits", commits)):
            (tmp_path / "ticks" / folder).mkdir(parents=True, exist_ok=True)
            for number in range(count):
                (tmp_path / "ticks" / folder / str(number)).touch()
                (tmp_path / "ticks" / folder / f".{number}.crc").touch()
        return tmp_path / "ticks"

    return write


def test_a_new_query_starts_with_the_first_train(tmp_path):
    assert first_train(tmp_path / "ticks", -1, committed=True) == (0, 0)


def test_stopped_while_waiting(spark_log):
    first_train(spark_log(0, 0), -1, committed=True)
    assert first_train(spark_log(4, 3), 2, committed=True) == (3, 0)


def test_killed_in_the_middle_of_a_train(spark_log):
    first_train(spark_log(0, 0), -1, committed=True)
    assert first_train(spark_log(4, 3), 3, committed=False) == (3, 0)


def test_killed_between_commit_and_publishing(spark_log):
    # Spark has not heard of the end of train 3: it is asked for again, and published again
    first_train(spark_log(0, 0), -1, committed=True)
    assert first_train(spark_log(4, 3), 3, committed=True) == (3, 0)


def test_a_micro_batch_that_spark_committed_without_a_ticket(spark_log):
    first_train(spark_log(0, 0), -1, committed=True)
    assert first_train(spark_log(5, 5), 2, committed=True) == (3, 2)
    # the difference stays, and is taken into account at the next start
    assert first_train(spark_log(8, 7), 4, committed=True) == (5, 2)


def test_spark_log_gone(spark_log, tmp_path):
    first_train(spark_log(0, 0), -1, committed=True)
    for committed, expected in ((True, 7), (False, 6)):
        assert first_train(tmp_path / "elsewhere", 6, committed=committed) == (expected, -expected)
