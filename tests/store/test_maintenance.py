"""Compaction, retention and leases: whatever they do, a reader finds exactly what came after its position."""

from __future__ import annotations

import shutil
import threading

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.store import durable
from penstock.store.errors import (
    CorruptFileError,
    HistoryLostError,
    LeaseLostError,
    MissingFileError,
    StoreError,
)
from penstock.store.points.compaction import Sizes, compact
from penstock.store.points.generations import sweep
from penstock.store.points.leases import live_leases, take_lease
from penstock.store.points.point import PointReader, PointWriter
from penstock.store.points.ranges import Interval
from penstock.store.points.retention import maintain, retain

from .points import SCHEMA, HandClock, put, seqs

EAGER = Sizes(min_entries=1, file_rows=10)


@pytest.fixture
def clock():
    return HandClock()


def fill(root, entries=20, rows=5, key="seg", start=0, **more):
    """Entry n holds `rows` tuples of time n * 10 onward, with keys all over, and promises n * 10."""
    writer = PointWriter(root, "p", SCHEMA, key=key)
    for n in range(start, start + entries):
        put(
            writer,
            n,
            [((n * 7 + k * 13) % 50, "x", n * 10 + k, n * rows + k) for k in range(rows)],
            horizon=n * 10,
            arrival=float(n),
        )
    return writer


def data_files(writer):
    return sorted(p.name for p in writer.manifest.data.iterdir())


def test_compaction_makes_few_sorted_files_and_keeps_every_entry(tmp_path):
    writer = fill(tmp_path)
    before = PointReader(tmp_path, "p").read()
    done = compact(tmp_path, "p", EAGER)
    assert (done.entries, done.rows, done.files_before, done.files_after) == (19, 95, 19, 10)
    reader = PointReader(tmp_path, "p")
    assert reader.read().equals(before)
    assert [(e.number, e.rows, e.horizon, e.arrival, e.previous) for e in reader.entries()] == [
        (n, 5, n * 10, float(n), n - 1) for n in range(20)
    ]
    for position in range(-1, 20):
        assert seqs(reader.read(position + 1)) == list(range((position + 1) * 5, 100))
    assert len(data_files(writer)) == 10 + 1 + 1  # segment, its entries, the newest entry


def test_after_compaction_a_narrow_key_reads_few_files(tmp_path):
    fill(tmp_path, entries=101)
    wanted = (Interval(7, 7),)
    scattered = PointReader(tmp_path, "p").plan(0, 100, wanted)
    compact(tmp_path, "p", Sizes(min_entries=1, file_rows=25))
    sorted_ = PointReader(tmp_path, "p").plan(0, 100, wanted)
    assert len(scattered.files) > 50
    assert len(sorted_.files) <= 3  # one, or two where the key lies on a cut, and the newest entry
    assert sorted_.rows + sorted_.skipped_rows == 505
    assert sorted_.skipped_files >= 18
    found = pa.concat_tables(sorted_.tables())
    hits = [row["_seq"] for row in found.to_pylist() if row["seg"] == 7]
    everything = PointReader(tmp_path, "p").read().to_pylist()
    assert sorted(hits) == [row["_seq"] for row in everything if row["seg"] == 7]


def test_segments_of_similar_size_are_merged(tmp_path):
    for start in range(0, 64, 4):
        fill(tmp_path, entries=4, start=start)
        compact(tmp_path, "p", Sizes(min_entries=3))
    segments = PointReader(tmp_path, "p").base.segments
    assert len(segments) <= 5  # logarithmic in 16 passes
    assert [s.first for s in segments[1:]] == [s.last + 1 for s in segments[:-1]]
    assert seqs(PointReader(tmp_path, "p").read()) == list(range(320))


def test_segments_stay_within_rows_and_span(tmp_path):
    fill(tmp_path, entries=11)
    while compact(tmp_path, "p", Sizes(min_entries=1, segment_rows=15)):
        pass
    assert [s.rows for s in PointReader(tmp_path, "p").base.segments] == [15, 15, 15, 5]
    other = tmp_path / "other"
    for start in (0, 5):
        fill(other, entries=5, start=start)
        compact(other, "p", Sizes(min_entries=1, span=50))
    assert len(PointReader(other, "p").base.segments) == 2


def test_a_replayed_train_is_no_op_after_compaction(tmp_path):
    writer = fill(tmp_path, entries=4)
    compact(tmp_path, "p", EAGER)
    fill(tmp_path, entries=4)
    assert seqs(PointReader(tmp_path, "p").read()) == list(range(20))
    with pytest.raises(StoreError, match="another content") as error:
        put(writer, 1, [(1, "x", 1, 1)], replace=True)
    assert error.value.hint == "compacted entries cannot be replaced"


def test_an_entry_replaced_during_compaction_wins(tmp_path, monkeypatch):
    writer = fill(tmp_path, entries=3)
    from penstock.store.points import compaction

    real = compaction._write_segment

    def meanwhile(*args):
        made = real(*args)
        put(writer, 0, [(1, "x", 1, 777)], replace=True)
        return made

    monkeypatch.setattr(compaction, "_write_segment", meanwhile)
    assert compact(tmp_path, "p", EAGER) is None
    assert 777 in seqs(PointReader(tmp_path, "p").read())
    monkeypatch.undo()
    assert compact(tmp_path, "p", EAGER).entries == 2
    assert 777 in seqs(PointReader(tmp_path, "p").read())


def test_a_reader_with_a_lease_keeps_its_old_files(tmp_path, clock):
    writer = fill(tmp_path)
    reader = PointReader(tmp_path, "p")
    lease = take_lease(reader, "slow", every=0, clock=clock)
    plan = reader.plan(0, 19)
    compact(tmp_path, "p", EAGER, clock=clock)
    assert sum(t.num_rows for t in plan.tables()) == 100
    assert len(data_files(writer)) == 20 + 11
    lease.renew(4)  # between trains: now it works with the new files
    sweep(writer.manifest, clock)
    assert len(data_files(writer)) == 12
    with pytest.raises(MissingFileError):
        list(plan.tables())
    assert seqs(reader.read(5)) == list(range(25, 100))


def test_a_reader_without_a_lease_plans_anew(tmp_path):
    fill(tmp_path)
    reader = PointReader(tmp_path, "p")
    compact(tmp_path, "p", EAGER)
    assert seqs(reader.read()) == list(range(100))


def test_a_killed_compaction_leaves_the_table_as_it_was(tmp_path, monkeypatch):
    writer = fill(tmp_path)
    monkeypatch.setattr(
        "penstock.store.points.compaction.publish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        compact(tmp_path, "p", EAGER)
    monkeypatch.undo()
    assert seqs(PointReader(tmp_path, "p").read()) == list(range(100))
    compact(tmp_path, "p", EAGER)
    assert sweep(writer.manifest, grace=-1) == 0  # the next one wrote the same files; nothing is left over
    writer.stage(3, [PointReader(tmp_path, "p").read().drop_columns(["_entry"])])
    assert sweep(writer.manifest, grace=-1) == 1  # a committed train staged again, otherwise
    writer.stage(99, [PointReader(tmp_path, "p").read().drop_columns(["_entry"])])
    assert sweep(writer.manifest, grace=-1) == 0  # a train still to be committed


def test_a_base_torn_at_any_byte_is_refused(tmp_path):
    writer = fill(tmp_path, entries=3)
    compact(tmp_path, "p", EAGER)
    path = writer.manifest.base_path(1)
    whole = path.read_bytes()
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(CorruptFileError):
            PointReader(tmp_path, "p")


def test_only_one_pass_runs_at_a_time(tmp_path):
    writer = fill(tmp_path)
    with durable.locked(writer.manifest.maintenance_lock):
        assert compact(tmp_path, "p", EAGER) is None
        assert retain(tmp_path, "p", 0) is None


@pytest.mark.parametrize("compacted", [False, True])
def test_retention_deletes_what_is_wholly_old(tmp_path, compacted):
    writer = fill(tmp_path, key=None)
    if compacted:
        compact(tmp_path, "p", Sizes(min_entries=1, file_rows=5))
    done = retain(tmp_path, "p", 50, grace=-1)  # horizon 190: everything below 140 goes
    reader = PointReader(tmp_path, "p")
    assert (done.files, done.rows) == (14, 70)
    assert seqs(reader.read()) == list(range(70, 100))
    assert reader.thinned == 13
    assert len(data_files(writer)) == 6 + compacted
    assert retain(tmp_path, "p", 50).files == 0
    put(writer, 20, [(1, "x", 300, 100)], horizon=1000)
    retain(tmp_path, "p", 50)
    reader.reload()
    assert (seqs(reader.read()), reader.oldest().number) == ([100], 20)
    with pytest.raises(HistoryLostError, match="entries after 3 have been deleted"):
        reader.entries(3)
    with pytest.raises(HistoryLostError, match="comes too late"):
        take_lease(reader, "r", 3)


def test_a_tuple_exactly_as_old_as_the_persistence_stays(tmp_path):
    writer = PointWriter(tmp_path, "p", SCHEMA)
    for n, ts in enumerate([49, 50, 51]):
        put(writer, n, [(1, "x", ts, n)])
    put(writer, 3, [], horizon=100)
    retain(tmp_path, "p", 50)
    assert seqs(PointReader(tmp_path, "p").read()) == [1, 2]


@pytest.mark.parametrize("key", ["seg", None])
def test_a_lease_keeps_old_tuples_in_compacted_files_too(tmp_path, clock, key):
    fill(tmp_path, key=key)
    reader = PointReader(tmp_path, "p")
    lease = take_lease(reader, "r", 4, every=0, clock=clock)
    compact(tmp_path, "p", EAGER, clock=clock)
    lease.renew(4)  # it reads the compacted files from here on, so only its position protects them
    retain(tmp_path, "p", 0, clock=clock, grace=-1)
    lease.renew(4)
    assert seqs(reader.read(5)) == list(range(25, 100))


def test_a_plan_names_only_files_of_its_entries(tmp_path):
    fill(tmp_path, entries=6)
    plan = PointReader(tmp_path, "p").plan(1, 3)
    assert [(f.first, f.last) for f in plan.files] == [(1, 1), (2, 2), (3, 3)]
    assert (plan.rows, plan.skipped_files) == (15, 0)


def test_the_newest_entry_stays_for_its_horizon(tmp_path):
    fill(tmp_path, entries=3)
    retain(tmp_path, "p", -(10**9))
    assert PointReader(tmp_path, "p").latest().horizon == 20


def test_streams_without_timestamps_are_kept_by_arrival(tmp_path):
    writer = PointWriter(tmp_path, "p", SCHEMA)
    for n in range(10):
        put(writer, n, [(1, "x", None, n)], horizon=-(2**63) + 1, arrival=float(n))
    retain(tmp_path, "p", 3_000_000)
    assert seqs(PointReader(tmp_path, "p").read()) == [6, 7, 8, 9]


def test_a_lease_holds_until_it_expires(tmp_path, clock):
    writer = fill(tmp_path)
    reader = PointReader(tmp_path, "p")
    lease = take_lease(reader, "ad hoc/1", 4, seconds=60, every=0, clock=clock)
    done = retain(tmp_path, "p", 50, clock=clock)
    assert (done.removed, done.held_by) == (4, ("ad hoc/1",))
    assert seqs(reader.read(5)) == list(range(25, 100))
    clock.now += 59
    lease.renew()
    clock.now += 59
    lease.renew(7)
    assert retain(tmp_path, "p", 50, clock=clock).removed == 7
    clock.now += 61
    assert live_leases(writer.manifest, clock) == []
    assert retain(tmp_path, "p", 50, clock=clock).removed == 13
    with pytest.raises(LeaseLostError, match="reader 'ad hoc/1' of connection point 'p' has lost its lease"):
        lease.renew(8)


def test_a_permanent_lease_is_found_again_after_any_pause(tmp_path, clock):
    fill(tmp_path)
    take_lease(PointReader(tmp_path, "p"), "down", 2, seconds=None, clock=clock)
    clock.now += 10**9
    retain(tmp_path, "p", 0, clock=clock)
    with take_lease(PointReader(tmp_path, "p"), "down", 2, seconds=None, clock=clock) as again:
        assert again.position == 2
        assert seqs(PointReader(tmp_path, "p").read(3)) == list(range(15, 100))
    assert retain(tmp_path, "p", 0, clock=clock).held_by == ()


def test_renewals_are_not_written_more_often_than_asked(tmp_path, clock):
    writer = fill(tmp_path)
    lease = take_lease(PointReader(tmp_path, "p"), "r", seconds=60, every=5, clock=clock)
    clock.now += 4
    lease.renew(7)
    assert (lease.position, live_leases(writer.manifest, clock)[0].position) == (7, -1)
    clock.now += 1
    lease.renew()
    assert live_leases(writer.manifest, clock)[0].expires == clock.now + 60


def test_maintain_does_both(tmp_path):
    fill(tmp_path, entries=100, key=None)
    compaction, retention = maintain(tmp_path, "p", 500)  # horizon 990: everything below 490 goes
    assert (retention.rows, retention.removed) == (49 * 5, 48)
    assert compaction.entries == 13  # 490 to 614: no more than a quarter of the persistence lies together
    left = PointReader(tmp_path, "p").read()["_ts"].to_pylist()
    assert sorted(left) == [n * 10 + k for n in range(49, 100) for k in range(5)]


def test_compaction_does_not_keep_the_old_with_the_new(tmp_path):
    """Many passes over a stream that goes on: never much more than the persistence is there."""
    for start in range(0, 400, 40):
        fill(tmp_path, entries=40, start=start)
        maintain(tmp_path, "p", 1000)
        newest = (start + 39) * 10
        left = PointReader(tmp_path, "p").read()["_ts"].to_pylist()
        assert min(left) >= newest - 1000 - 250 - 10
        assert set(range(max(0, newest - 1000), newest, 10)) <= set(left)


def test_what_a_lease_held_goes_piece_by_piece_when_it_moves_on(tmp_path, clock):
    fill(tmp_path, entries=400)
    reader = PointReader(tmp_path, "p")
    lease = take_lease(reader, "slow", every=0, clock=clock)
    for _ in range(5):
        maintain(tmp_path, "p", 400, clock=clock)
    assert seqs(reader.read()) == list(range(2000))
    lease.renew(199)
    maintain(tmp_path, "p", 400, clock=clock)
    left = PointReader(tmp_path, "p").read()
    assert 1000 - 11 * 5 <= left["_seq"].to_pylist()[0] <= 1000
    assert seqs(left)[-1000:] == list(range(1000, 2000))


@pytest.mark.parametrize("silence", [False, True])
def test_without_a_horizon_the_newest_tuple_tells_the_time(tmp_path, silence):
    """Behind a count window with the earliest stamp nothing is ever promised."""
    unknown = -(2**63) + 1
    writer = PointWriter(tmp_path, "p", SCHEMA)
    for n in range(100):
        rows = [] if silence and n % 3 else [(1, "x", n * 60, n)]
        put(writer, n, rows, horizon=unknown, arrival=0.0)
    maintain(tmp_path, "p", 600)
    kept = [n for n in range(100) if not (silence and n % 3) and n * 60 >= 99 * 60 - 600]
    assert seqs(PointReader(tmp_path, "p").read()) == kept


def test_readers_in_threads_see_every_row_once_while_all_runs(tmp_path):
    writer = PointWriter(tmp_path, "p", SCHEMA, key="seg")
    put(writer, 0, [(0, "x", 0, 0)])
    stop, problems = threading.Event(), []

    def follow() -> None:
        try:
            reader = PointReader(tmp_path, "p")
            lease, seen = take_lease(reader, threading.current_thread().name, every=0), []
            position = lease.position
            while not (stop.is_set() and position == 149):
                news = reader.entries(position)
                if news:
                    seen += seqs(reader.read(position + 1, news[-1].number))
                    position = news[-1].number
                    lease.renew(position)
                else:
                    stop.wait(0.002)
            start = seen[0]
            assert seen == list(range(start, 150)), seen
        except BaseException as error:
            problems.append(error)

    readers = [threading.Thread(target=follow, name=f"r{n}") for n in range(3)]
    for thread in readers:
        thread.start()
    for n in range(1, 150):
        put(writer, n, [(n % 5, "x", n, n)], horizon=n)
        if n % 10 == 0:
            compact(tmp_path, "p", Sizes(min_entries=5))
            retain(tmp_path, "p", 20, grace=-1)
    stop.set()
    for thread in readers:
        thread.join(120)
    assert not problems
    assert not any(thread.is_alive() for thread in readers)


class Point(RuleBasedStateMachine):
    """Random appends, compactions, retentions and leases against a plain list of rows."""

    @initialize(key=st.sampled_from(["seg", None]))
    def begin(self, key):
        import tempfile

        self.root = tempfile.mkdtemp()
        self.clock = HandClock()
        self.writer = PointWriter(self.root, "p", SCHEMA, key=key, file_rows=4)
        self.stale = PointReader(self.root, "p")
        self.rows: list[tuple[int, int, int]] = []  # (entry, ts, seq)
        self.limit = -(2**62)
        self.entry = self.horizon = 0
        self.leases = {}

    def teardown(self):
        shutil.rmtree(getattr(self, "root", "/nonexistent"), ignore_errors=True)

    @rule(
        rows=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), max_size=9),
        step=st.integers(0, 9),
        gap=st.integers(1, 3),
    )
    def append(self, rows, step, gap):
        self.entry += gap
        self.horizon += step
        made = [(seg, "x", self.horizon + ts, len(self.rows) + n) for n, (seg, ts) in enumerate(rows)]
        put(self.writer, self.entry, made, horizon=self.horizon)
        self.rows += [(self.entry, ts, seq) for _, _, ts, seq in made]

    @rule(segment_rows=st.integers(1, 60), file_rows=st.integers(1, 10))
    def compact(self, segment_rows, file_rows):
        compact(self.root, "p", Sizes(1, file_rows, segment_rows), clock=self.clock)

    @rule(keep=st.integers(0, 30))
    def retain(self, keep):
        retain(self.root, "p", keep, clock=self.clock, grace=-1)
        self.limit = max(self.limit, self.horizon - keep)

    @rule(name=st.sampled_from("ab"), restart=st.booleans())
    def lease(self, name, restart):
        reader = PointReader(self.root, "p")
        lease = take_lease(reader, name, seconds=50, every=0, clock=self.clock)
        have = {row["_seq"] for row in reader.read(lease.position + 1).to_pylist()}
        self.leases[name] = (reader, lease, have, self.entry)

    @rule(name=st.sampled_from("ab"), share=st.integers(1, 3))
    def advance(self, name, share):
        if name not in self.leases:
            return
        reader, lease, promised, since = self.leases[name]
        news = reader.entries(lease.position)[:share]
        if news:
            got = [row["_seq"] for row in reader.read(lease.position + 1, news[-1].number).to_pylist()]
            wanted = [
                seq
                for entry, _, seq in self.rows
                if lease.position < entry <= news[-1].number and (seq in promised or entry > since)
            ]
            assert sorted(got) == wanted
            lease.renew(news[-1].number)

    @rule(name=st.sampled_from("ab"))
    def die(self, name):
        if self.leases.pop(name, None):
            self.clock.now += 51
            for _, lease, _, _ in self.leases.values():
                lease.renew()

    @invariant()
    def everything_not_old_is_there_once(self):
        if not hasattr(self, "rows"):
            return
        for reader in (PointReader(self.root, "p"), self.stale):
            found = [(row["_entry"], row["_ts"], row["_seq"]) for row in reader.read().to_pylist()]
            assert len(found) == len(set(found))
            assert set(found) <= set(self.rows)
            assert {row for row in self.rows if row[1] >= self.limit} <= set(found)
        middle = max(self.entry // 2, reader.removed)
        rest = [row["_seq"] for row in reader.read(middle + 1).to_pylist()]
        assert sorted(rest) == sorted(seq for entry, _, seq in found if entry > middle)


Point.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
TestPoint = Point.TestCase


def test_retention_says_from_when_on_every_tuple_is_there(tmp_path, clock):
    fill(tmp_path)
    before = PointReader(tmp_path, "p").read()
    retain(tmp_path, "p", 100, clock=clock)
    reader = PointReader(tmp_path, "p")
    left, since = set(reader.read()["_ts"].to_pylist()), reader.base.lost_before
    everything = set(before["_ts"].to_pylist())
    assert left < everything
    assert {stamp for stamp in everything if stamp >= since} <= left
    assert since - 1 in everything - left
