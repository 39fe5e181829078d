"""Spark's log of ticks: a new folder for each start of a query, whatever the last one left."""

from __future__ import annotations

from penstock.engine.spark.trains.ticks import fresh_ticks


def test_each_start_gets_an_empty_folder(tmp_path):
    first = fresh_ticks(tmp_path, 3)
    (first / "offsets").mkdir()
    (first / "offsets" / ".0.9e1c.tmp").touch()  # a start that was killed
    second = fresh_ticks(tmp_path, 3)
    assert second != first
    assert not list(second.iterdir())
    assert not first.exists()


def test_the_folder_of_the_owner_before_stays_for_one_epoch(tmp_path):
    folders = [fresh_ticks(tmp_path, epoch) for epoch in (1, 2)]
    fresh_ticks(tmp_path, 3)
    assert [folder.exists() for folder in folders] == [False, True]
