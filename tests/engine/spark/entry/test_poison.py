"""Input that cannot be read: a run goes on without it, says so, and does the same again in a replay."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.spark.recovery import version_folder
from penstock.engine.spark.recovery.state_versions import StateVersions
from penstock.engine.spark.runs.train_run import TrainRun
from penstock.engine.spark.trains import train
from penstock.store.dead_letters import DeadLetters

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "time TIMESTAMP, v INT"


def table(numbers, unit="us", extra=()):
    times = pa.array([START + timedelta(seconds=n) for n in numbers], pa.timestamp("us", "UTC"))
    stamps = pa.array([*times.cast(pa.timestamp(unit, "UTC")).cast("int64").to_pylist(), *extra])
    values = pa.array([*numbers, *range(len(extra))], pa.int32())
    return pa.table({"time": stamps.cast(pa.timestamp(unit, "UTC")), "v": values})


def settled(path):
    os.utime(path, (1, 1))


def break_pages(path, group):
    """Overwrite the pages of one row group."""
    metadata = pq.read_metadata(path).row_group(group).column(1)
    with path.open("r+b") as file:
        file.seek(metadata.dictionary_page_offset or metadata.data_page_offset)
        file.write(b"\xff" * metadata.total_compressed_size)


def run(spark, folder, form, **options):
    net = ps.Network("poison")
    source = net.source("cars", form(str(folder / "in"), SCHEMA, **options), timestamp="time")
    source.filter("v >= 0").output("out", to=(kept := ps.memory()))
    policy = AsSoonAsPossible(length=1000)
    with ps.Runtime(net, spark, folder / "ck", once=True, close=True, policy=policy, partitions=2) as running:
        running.wait(120)
        account = running.status().accounts["cars"]
    letters = DeadLetters(folder / "ck").read().to_pylist()
    return sorted(row["v"] for row in kept.rows), account, letters


def test_parquet_that_no_reader_takes_as_it_is(spark, tmp_path):
    """Nanoseconds, broken pages, times out of range, a column twice: one run reads what can be read."""
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(table(range(10)), folder / "0_good.parquet")
    pq.write_table(table(range(10, 20)), folder / "1_broken.parquet", row_group_size=5)
    break_pages(folder / "1_broken.parquet", 1)
    pq.write_table(table(range(20, 25), extra=[2**61, -(2**61)]), folder / "2_range.parquet")
    pq.write_table(table(range(30, 35), "ns"), folder / "3_nanoseconds.parquet", version="2.6")
    twice = pa.Table.from_arrays([*table(range(3)).columns, pa.array([1, 2, 3])], names=["time", "v", "v"])
    pq.write_table(twice, folder / "4_twice.parquet")
    for path in folder.iterdir():
        os.utime(path, (int(path.name[0]) + 1,) * 2)
    numbers, account, letters = run(spark, tmp_path, ps.parquet)
    assert numbers == [*range(15), *range(20, 25), *range(30, 35)]
    assert (account.offered, account.let_in, account.dead) == (35, 25, 10)
    reasons = sorted((row["file"].rsplit("/", 1)[1], row["tuples"], row["line"]) for row in letters)
    assert reasons == [
        ("1_broken.parquet", 5, 6),
        ("2_range.parquet", 1, 6),
        ("2_range.parquet", 1, 7),
        ("4_twice.parquet", 3, None),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("form", [ps.csv, ps.parquet])
def test_a_file_deleted_before_it_is_read(spark, tmp_path, form, monkeypatch):
    """The ticket says what was left out, so a replay leaves out the same."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(2):
        if form is ps.csv:
            (folder / f"{number}").write_text(f"2026-01-01 00:00:0{number},{number}\n")
        else:
            pq.write_table(table([number]), folder / f"{number}")
        os.utime(folder / f"{number}", (number + 1, number + 1))
    write = TrainLog.write_ticket

    def write_and_lose(self, ticket):
        write(self, ticket)
        (folder / "1").unlink(missing_ok=True)

    monkeypatch.setattr(TrainLog, "write_ticket", write_and_lose)
    numbers, account, letters = run(spark, tmp_path, form)
    assert numbers == [0]
    assert (account.offered, account.let_in, account.dead) == (2, 1, 1)
    assert [(row["file"], "deleted" in row["reason"]) for row in letters] == [(f"{folder}/1", True)]
    (amended,) = (tmp_path / "ck" / "queries").glob("*/amended/*.json")
    assert '"left_out":{"cars":[' in amended.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("form", "frames"), [(ps.csv, False), (ps.parquet, False), (ps.parquet, True)])
def test_state_is_rebuilt_without_what_could_not_be_read(spark, tmp_path, form, frames, monkeypatch, caplog):
    """A file is gone when its train runs. The machine fails, and the file is back: it stays left out."""
    if frames:
        monkeypatch.setattr(train, "train_run", TrainRun)
    memory, folder, kept = tmp_path / "memory", tmp_path / "in", tmp_path / "aside"
    memory.mkdir()
    folder.mkdir()
    monkeypatch.setattr(version_folder, "MEMORY", memory)
    monkeypatch.setattr(version_folder, "_has_room", lambda _folder: True)

    def put(number):
        if form is ps.csv:
            (folder / f"{number}").write_text(f"2026-01-01 00:00:0{number},{number}\nrubbish\n")
        else:
            pq.write_table(table([number]), folder / f"{number}")
        os.utime(folder / f"{number}", (number + 1, number + 1))

    def run_on(**options):
        net = ps.Network("poison")
        source = net.source("cars", form(str(folder), SCHEMA), timestamp="time", stays=True)
        sums = source.tumble("1 hour", n="count(*)", total="sum(v)", name="sums")
        sums.output("out", to=(rows := ps.memory()))
        settings = {"once": True, "partitions": 2, "recovery": "1 hour", **options}
        with ps.Runtime(net, spark, tmp_path / "ck", **settings) as running:
            assert running.wait(120)
        return rows.rows

    write = TrainLog.write_ticket

    def write_and_lose(self, ticket):
        write(self, ticket)
        if (folder / "1").exists():
            (folder / "1").rename(kept)

    put(0)
    put(1)
    with monkeypatch.context() as patched:
        patched.setattr(TrainLog, "write_ticket", write_and_lose)
        patched.setattr(StateVersions, "close", lambda _versions: None)  # as if it was killed
        run_on()
    assert kept.exists()
    shutil.rmtree(memory)
    memory.mkdir()
    kept.rename(folder / "1")
    put(2)
    (row,) = run_on(close=True)
    assert (row["n"], row["total"]) == (2, 2)
    assert "run again" in caplog.text


@pytest.mark.slow
def test_lines_of_ten_megabytes_and_odd_json(spark, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    good = '{"time": "2026-01-01T00:00:01", "v": 7}\n'
    with (folder / "long.json").open("w") as file:
        for _ in range(20):
            file.write('{"v": "' + "x" * 10_000_000 + '"}\n' + good)
        file.write(
            '{"time": {"base64": 5}, "v": 1}\n{"time": "0000-01-01", "v": 1}\n' + "[" * 5000 + "\n" + good
        )
    settled(folder / "long.json")
    numbers, account, letters = run(spark, tmp_path, ps.json)
    assert numbers == [7] * 21
    assert (account.offered, account.let_in, account.dead) == (44, 21, 23)
    assert max(len(row["raw"]) for row in letters) < 5000
    assert sum("max_line" in row["reason"] for row in letters) == 20
