"""A slice enters through valves: what is shed is neither dead nor late, and its time counts. No Spark."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.connectors.contract import Taken
from penstock.connectors.feed import FeedFile
from penstock.connectors.files.parquet import WholeParquet
from penstock.connectors.files.text import ByteRange
from penstock.engine.contract.valve import LeftOut, Valve, group_stays
from penstock.engine.spark.entry.slice_entry import enter, left_out, still_acting
from penstock.model.boxes import Source
from penstock.model.formats.feed import GROUP_BITS

SCHEMA = "time TIMESTAMP, k STRING, v INT"
SECOND = 1_000_000
UNKNOWN = -(2**63) + 1


def source(format_=None, timestamp="time"):
    format_ = format_ or ps.csv("in/", schema=SCHEMA)
    return Source(name="cars", format=format_, schema=ps.Schema.parse(SCHEMA), timestamp=timestamp)


@pytest.fixture
def piece(tmp_path):
    """4,000 lines, one a second: every tenth cannot be read, every eleventh has no time."""
    times = [f"1970-01-01 {i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d}" for i in range(4000)]
    lines = [f"{time},key {i % 40},{i}" for i, time in enumerate(times)]
    for i in range(0, 4000, 10):
        lines[i] = f"never,{i}"
    for i in range(0, 4000, 11):
        lines[i] = f",a,{i}"
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines) + "\n")
    return ByteRange(str(path), 0, 0, path.stat().st_size, 0, rows=4000)


VALVES = [
    Valve("cars", 0.5, "tuples", 7),
    Valve("cars", 0.5, "blocks", 7),
    Valve("cars", 0.0, "slices", 7),
    Valve("cars", 0.5, "keys", 11, keys=("k",)),
    Valve("cars", 0.5, "windows", 7, size=100 * SECOND, every=100 * SECOND),
    Valve("cars", 0.5, "values", predicate="v < 2000"),
    Valve("cars", 0.5, "values", 7, predicate="v < 1000", partly="v < 2000", part=0.3),
]


@pytest.mark.parametrize("valve", VALVES, ids=lambda valve: valve.grain)
@pytest.mark.parametrize("horizon", [UNKNOWN, 1000 * SECOND])
def test_every_line_is_accounted_for(piece, valve, horizon):
    exact, thin = enter(source(), piece, horizon), enter(source(), piece, horizon, [valve])
    assert exact.offered == thin.offered == 4000
    assert thin.shed > 0
    assert thin.offered == thin.tuples.num_rows + thin.dead.num_rows + thin.shed
    offsets = set(exact.dead.column("offset").to_pylist())
    assert set(thin.dead.column("offset").to_pylist()) <= offsets
    rows = set(exact.tuples.column("v").to_pylist())
    assert set(thin.tuples.column("v").to_pylist()) < rows


@pytest.mark.parametrize("grain", ["tuples", "blocks", "slices"])
def test_all_shed_still_tells_the_time(piece, grain):
    none = enter(source(), piece, UNKNOWN, [Valve("cars", 0.0, grain)])
    assert (none.shed, none.tuples.num_rows, none.dead.num_rows) == (4000, 0, 0)
    assert none.newest == 3999 * SECOND


def test_several_valves_at_one_place(piece):
    both = enter(source(), piece, UNKNOWN, [VALVES[5], VALVES[1], VALVES[0]])
    apart = [set(enter(source(), piece, UNKNOWN, [v]).tuples.column("v").to_pylist()) for v in VALVES[:2]]
    kept = set(both.tuples.column("v").to_pylist())
    assert kept == {v for v in set.intersection(*apart) if v < 2000}
    assert both.offered == both.tuples.num_rows + both.dead.num_rows + both.shed


def test_bytes_that_were_read_elsewhere(piece):
    given = enter(source(), piece, UNKNOWN, [VALVES[1]], memoryview(piece.read()))
    assert given == enter(source(), piece, UNKNOWN, [VALVES[1]])


# -- in the conductor


def files(folder, number=20):
    made = []
    for i in range(number):
        path = folder / f"{i}.parquet"
        pq.write_table(pa.table({"v": [i]}), path)
        made.append(WholeParquet(str(path), i, 10, least=i * SECOND, latest=(i + 1) * SECOND, nulls=0))
    return made


def test_whole_files_are_left_out_unread(tmp_path):
    pieces, valve = files(tmp_path), Valve("cars", 0.5, "slices", 3)
    stay, gone = left_out(source(), Taken(pieces, None, 200), [valve])
    assert 0 < len(stay) < 20
    out = [piece for piece in pieces if piece not in stay]
    assert gone == LeftOut(10 * len(out), max(piece.latest for piece in out))
    assert still_acting(source(), stay, [valve]) == ()


def test_a_file_whose_times_nobody_knows_is_read(tmp_path):
    pieces = [WholeParquet(str(tmp_path / "a.parquet"), 0, 10)]
    valve = Valve("cars", 0.0, "slices", 3)
    assert left_out(source(), Taken(pieces, None, 10), [valve]) == (pieces, LeftOut())
    assert still_acting(source(), pieces, [valve]) == (valve,)
    assert left_out(source(timestamp=None), Taken(pieces, None, 10), [valve]) == ([], LeftOut(10, None))


def test_a_smaller_share_keeps_a_part_of_what_a_larger_one_keeps():
    kept = [{group for group in range(48) if group_stays(share / 100, group)} for share in range(101)]
    assert all(less <= more for less, more in itertools.pairwise(kept))
    assert all(abs(len(groups) - 0.48 * share) <= 2 for share, groups in enumerate(kept))
    for share, groups in enumerate(kept):
        of_partition = [sum(group % 2 == part for group in groups) for part in range(2)]
        assert abs(of_partition[0] - of_partition[1]) <= 3, share


def test_groups_of_a_feed_go_whole():
    pieces = [FeedFile(f"{at}-{group}", at, group, 100, 7) for at in range(5) for group in range(8)]
    by_group = Valve("cars", 0.5, "keys", 3)
    stay, gone = left_out(source(), Taken(pieces, None, 280), [by_group])
    groups = {piece.group for piece in stay}
    assert 0 < len(groups) < 8
    assert stay == [piece for piece in pieces if piece.group in groups]
    out = tuple(group for group in range(8) if group not in groups)
    assert gone == LeftOut(7 * (len(pieces) - len(stay)), 4 * SECOND, 0, out)
    assert LeftOut.of(json.loads(json.dumps(asdict(gone)))) == gone
    each = Valve("cars", 0.5, "slices", 3, slice_bits=GROUP_BITS)
    some, _ = left_out(source(), Taken(pieces, None, 280), [each])
    assert 0 < len(some) < len(pieces)
    assert {piece.group for piece in some} != groups
