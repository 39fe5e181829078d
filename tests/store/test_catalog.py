"""The catalog: what goes in comes out, sums stay exact while history is cut, threads and processes do not
disturb one another.
"""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.boxes import About, Filter, Union
from penstock.store.catalog import catalog as catalog_module
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import (
    ArrowRecord,
    BoxCount,
    Event,
    Latency,
    NodeRecord,
    StorageLocation,
    Totals,
    TrainRecord,
)
from penstock.store.errors import StoreError


@pytest.fixture
def catalog(tmp_path):
    made = Catalog(tmp_path / "c" / "catalog.db", keep=10)
    yield made
    made.close()


def record(train, rows=10, out=5, sub="main", box="slow"):
    return TrainRecord(
        sub, train, float(train), train + 0.5, rows, (BoxCount(box, rows, out, dead=1, dropped=2),)
    )


NODES = [
    Filter(name="slow", about=About(tag="s", description="few", group=("a", "b"))),
    Union(name="all", inputs=("slow", "slow")),
]


def test_networks_and_topology(catalog):
    assert catalog.topology() is None
    assert catalog.record_network("net", "a: 1", NODES, subnetworks={"slow": "main"}, at=5.0) == 1
    assert catalog.record_network("net", "a: 1", NODES) == 1
    assert catalog.record_network("net", "a: 2", NODES[:1]) == 2
    assert [(n.version, n.text, n.form) for n in catalog.networks()] == [
        (1, "a: 1", "yaml"),
        (2, "a: 2", "yaml"),
    ]
    assert catalog.networks()[0].time == 5.0
    old = catalog.topology(1)
    assert old.nodes == (
        NodeRecord("slow", "filter", "main", "s", "few", ("a", "b")),
        NodeRecord("all", "union"),
    )
    assert old.arrows == (ArrowRecord("slow", "all", 0), ArrowRecord("slow", "all", 1))
    assert [n.name for n in catalog.topology().nodes] == ["slow"]


def test_trains_come_back_and_a_replay_replaces(catalog):
    catalog.record_train(record(0))
    catalog.record_train(record(1))
    catalog.record_train(record(1, rows=20, out=1, box="other"))
    assert catalog.trains("main") == [record(0), record(1, rows=20, out=1, box="other")]
    assert catalog.trains("main", last=1)[0].duration == 0.5
    assert catalog.totals() == {"main": Totals("main", 2, 30, 1.0)}
    assert catalog.selectivity("slow") == 0.5
    assert catalog.selectivity("unknown") is None
    catalog.record_train(record(2, rows=0, out=0, box="idle"))
    assert catalog.selectivity("idle") is None


def test_what_was_shed_behind_decoding_comes_back(catalog):
    """Else trains that shed by value would look dearer after a restart than they are."""
    catalog.record_train(replace(record(0), decoded=7))
    assert catalog.trains("main") == [replace(record(0), decoded=7)]


def test_selectivity_over_the_last_trains(catalog):
    for train, out in enumerate([10, 10, 2, 4]):
        catalog.record_train(record(train, out=out))
    assert catalog.selectivity("slow", last=2) == pytest.approx(0.3)
    assert catalog.selectivity("slow") == pytest.approx(0.65)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab")), min_size=20, max_size=60))
def test_sums_are_exact_while_history_is_bounded(tmp_path_factory, trains):
    catalog = Catalog(tmp_path_factory.mktemp("c") / "catalog.db", keep=10)
    for number, (rows, sub) in enumerate(trains):
        catalog.record_train(record(number, rows=rows, sub=sub))
    assert sum(t.rows_in for t in catalog.totals().values()) == sum(rows for rows, _ in trains)
    assert catalog.counts()["slow"] == BoxCount(
        "slow", sum(r for r, _ in trains), 5 * len(trains), len(trains), 2 * len(trains)
    )
    for sub in "ab":
        own = [n for n, (_, s) in enumerate(trains) if s == sub]
        kept = [t.train for t in catalog.trains(sub)]
        assert len(kept) <= 11
        assert kept == own[len(own) - len(kept) :]
        assert len(kept) >= min(10, len(own))
    catalog.close()


def test_latency_is_by_nearest_rank_and_bounded(catalog):
    assert catalog.latency("jams") is None
    assert Latency.of("jams", 0.0, []) is None
    window = Latency.of("jams", 9.0, [n / 100 for n in range(100, 0, -1)])
    assert window == Latency("jams", 9.0, 100, 0.5, 0.95, 0.99, 1.0)
    for _ in range(200):
        catalog.record_latency(window)
    assert catalog.latency("jams") == window
    assert len(catalog.latencies("jams", last=1000)) <= 10 + 64


def test_places_and_events(catalog):
    catalog.record_location("main", "checkpoint", "/a", at=1.0)
    catalog.record_location("main", "checkpoint", "/b", at=2.0)
    assert catalog.locations() == [StorageLocation("main", "checkpoint", "/b", 2.0)]
    catalog.record_event("attach", "q1", at=1.0)
    catalog.record_event("replace", "main", at=2.0, blip=0.25)
    assert catalog.events() == [Event("attach", "q1", 1.0), Event("replace", "main", 2.0, {"blip": 0.25})]
    assert catalog.events(kind="replace") == catalog.events(subject="main")
    for n in range(30):
        catalog.record_event("drop_rate", "d", rate=n)
    assert [e.detail["rate"] for e in catalog.events()] == list(range(20, 30))


def test_a_failed_record_leaves_nothing(catalog):
    twice = TrainRecord("main", 0, 0.0, 1.0, 1, (BoxCount("a"), BoxCount("a")))
    with pytest.raises(sqlite3.IntegrityError):
        catalog.record_train(twice)
    assert catalog.totals() == {}
    catalog.record_train(record(0))


def _work(path, sub):
    catalog = Catalog(path)
    for train in range(40):
        catalog.record_train(record(train, sub=sub))
    catalog.close()


def test_threads_and_processes_at_once(tmp_path):
    path = tmp_path / "catalog.db"
    context = multiprocessing.get_context("spawn")
    workers = [threading.Thread(target=_work, args=(path, f"t{n}")) for n in range(3)]
    workers += [context.Process(target=_work, args=(path, f"p{n}")) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    catalog = Catalog(path)
    assert {name: total.trains for name, total in catalog.totals().items()} == dict.fromkeys(
        ["t0", "t1", "t2", "p0", "p1"], 40
    )
    assert catalog.selectivity("slow") == 0.5
    catalog.close()


def test_one_catalog_serves_several_threads(catalog):
    threads = [
        threading.Thread(target=lambda n=n: [catalog.record_event("idle", f"s{n}") for _ in range(2)])
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(catalog.events()) == 8


def test_estimates_are_marked_for_good(catalog):
    exact, guessed = BoxCount("slow", 10, 5), BoxCount("slow", 10, 4, estimated=True)
    for train in range(30):
        catalog.record_train(TrainRecord("main", train, 0.0, 1.0, 10, (guessed if train == 3 else exact,)))
    assert catalog.trains("main", 30)[-1].boxes == (exact,)
    assert catalog.counts()["slow"] == BoxCount("slow", 300, 149, estimated=True)


def test_the_cost_of_a_box_is_kept_and_summed(catalog):
    spent = BoxCount("slow", 10, 5, wall=0.5, cpu=0.25)
    for train in range(30):  # more than a catalog of this size keeps apart
        catalog.record_train(TrainRecord("main", train, 0.0, 1.0, 10, (spent,)))
    assert catalog.trains("main", 1)[0].boxes == (spent,)
    assert (catalog.counts()["slow"].wall, catalog.counts()["slow"].cpu) == (15.0, 7.5)


def test_what_is_no_catalog_is_refused(tmp_path):
    path = tmp_path / "catalog.db"
    path.write_bytes(b"this is no database at all" * 50)
    with pytest.raises(StoreError, match="is no catalog"):
        Catalog(path)
    path.unlink()
    Catalog(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 9")
    db.close()
    with pytest.raises(StoreError, match="written by another version"):
        Catalog(path)


def test_a_process_that_keeps_it_is_told_of(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog_module, "_PATIENCE", 0.05)
    other = sqlite3.connect(Catalog(tmp_path / "catalog.db").path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="if one was suspended, end it"):
        Catalog(tmp_path / "catalog.db").record_event("idle", "cars")
    other.close()
