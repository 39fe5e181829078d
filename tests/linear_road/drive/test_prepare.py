"""Time slices: every row once, in order, in its group and second; copies; going on after a crash."""

import json

import numpy as np
import pytest

from penstock.linear_road.drive.prepare import PreparePlan, prepare
from penstock.linear_road.drive.slices import decode, group_plan, open_slices
from penstock.linear_road.errors import InputError
from penstock.linear_road.rows import read_blocks as reading
from penstock.linear_road.rows.copies import Copies, Span, copies_of, span_of
from penstock.linear_road.rows.inputs import open_input
from penstock.store import durable

XWAYS = 4


def row(t, vid, xway, kind=0, qid=-1):
    if kind == 2:
        return [2, t, vid, -1, -1, -1, -1, -1, -1, qid, -1, -1, -1, -1, -1]
    return [0, t, vid, 50, xway, 2, vid % 2, 3, 16000, -1, -1, -1, -1, -1, -1]


def rows_of(seconds=40, each=9):
    rows = []
    for t in range(seconds):
        rows += [row(t, 100 * i + t % 30, i % XWAYS) for i in range(each)]
        rows.append(row(t, 100, -1, 2, t))
    return rows


def write(tmp_path, rows, name="rows.dat"):
    file = tmp_path / name
    file.write_text("".join(",".join(map(str, found)) + "\n" for found in rows))
    return open_input(file)


def delivered(slices):
    """{(second, group): rows}"""
    out = {}
    for second in range(slices.t0, slices.t1):
        for group in range(slices.groups):
            piece = slices.slice(second, group)
            if not piece.rows:
                continue
            if slices.format == "csv":
                found = [
                    [int(x) for x in text.split(",")] for text in piece.data.tobytes().decode().splitlines()
                ]
            else:
                found = np.stack(decode(piece.data), axis=1).tolist()
            assert len(found) == piece.rows
            out[second, group] = found
    return out


def shifted(rows, k, span):
    out = [list(found) for found in rows]
    for found in out:
        for column, by in ((2, span.vids), (9, span.qids), (4, span.xways)):
            if found[column] >= 0:
                found[column] += k * by
    return out


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("groups", [1, 2, 3, 4])
def test_every_row_is_in_its_second_and_group_in_order(tmp_path, form, groups):
    rows = rows_of()
    source = write(tmp_path, rows)
    slices = prepare(PreparePlan(source, groups, form, span=span_of(source)), tmp_path / "out")
    expected = {}
    for found in rows:
        group = max(found[4], 0) * groups // XWAYS
        expected.setdefault((found[1], group), []).append(found)
    assert delivered(slices) == expected
    assert slices.manifest["rows"] == len(rows)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_copies_are_shifted_whole(tmp_path, form, groups):
    rows = rows_of(seconds=5)
    source = write(tmp_path, rows)
    span = span_of(source)
    slices = prepare(PreparePlan(source, groups, form, copies_of(span, count=3), span), tmp_path / "out")
    found = sorted(tuple(one) for part in delivered(slices).values() for one in part)
    assert found == sorted(tuple(one) for k in range(3) for one in shifted(rows, k, span))
    assert slices.span == span.times(3)
    for (_, group), part in delivered(slices).items():
        xways = [one[4] for one in part if one[4] >= 0]
        assert all(x * groups // (3 * XWAYS) == group for x in xways), (
            "neighbouring expressways share a group"
        )


def test_span_counts_halves_and_ignores_refused_rows(tmp_path):
    rows = [row(0, 10, 0), row(0, 12, 1), row(1, 5, 0, 2, 3)]
    source = write(tmp_path, [*rows, [7, 1, 999, 0, 9, 0, 0, 0, 0, 77, 0, 0, 0, 0, 0]])
    assert span_of(source) == Span(vids=13, qids=4, xways=2, expressways=1.0)


def test_a_generated_input_states_its_span(tmp_path):
    write(tmp_path, rows_of(2))
    stated = {"files": ["rows.dat"], "xways": 1.5, "vid_limit": 4000, "qid_limit": 70}
    (tmp_path / "manifest.json").write_text(json.dumps(stated))
    assert span_of(open_input(tmp_path)) == Span(4000, 70, 2, 1.5)


def test_copies_by_the_number_of_expressways():
    span = Span(100, 10, 1, 0.5)
    assert copies_of(span, expressways=2).count == 4
    assert copies_of(span, count=1) == Copies()
    with pytest.raises(
        InputError,
        match=r"--xways 2\.7 is no multiple of the 0\.5 expressways .*\n  hint:     take --xways 2\.5",
    ):
        copies_of(span, expressways=2.7)
    with pytest.raises(InputError, match="--copies 0 is too few"):
        copies_of(span, count=0)
    with pytest.raises(InputError, match="need VIDs, QIDs or XWays above 2147483647"):
        copies_of(span, count=10**8)


def test_units_are_spread_evenly():
    sizes = [len(units) for units in group_plan(stored=2, copies=5, groups=4)]
    assert sum(sizes) == 10
    assert max(sizes) - min(sizes) <= 1
    with pytest.raises(InputError, match=r"--groups 11 is out of range\n  expected: 1\.\.10"):
        group_plan(2, 5, 11)


def test_a_window_is_cut_out(tmp_path):
    source = write(tmp_path, rows_of())
    slices = prepare(PreparePlan(source, begin=10, end=20), tmp_path / "out")
    assert (slices.t0, slices.t1) == (10, 20)
    assert {second for second, _ in delivered(slices)} == set(range(10, 20))


class Killed(Exception):
    pass


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_killed_preparation_goes_on_and_ends_the_same(tmp_path, monkeypatch, form):
    monkeypatch.setattr(reading, "CHUNK_BYTES", 2000)
    source = write(tmp_path, rows_of())
    span = span_of(source)
    plan = PreparePlan(source, 2, form, copies_of(span, count=2), span)
    whole = prepare(plan, tmp_path / "whole")
    calls = 0

    def kill(_done, _total):
        nonlocal calls
        calls += 1
        if calls == 4:
            raise Killed

    with pytest.raises(Killed):
        prepare(plan, tmp_path / "out", kill)
    assert all(file.name.startswith(".") for file in (tmp_path / "out").iterdir()), "nothing looks whole"
    with pytest.raises(InputError, match="no prepared slices"):
        open_slices(tmp_path / "out")
    # Bytes written after the last record are cut off again.
    with (tmp_path / "out" / ".g000.slices.part").open("ab") as stream:
        stream.write(b"half a row")
    starts = []
    again = prepare(plan, tmp_path / "out", lambda done, _total: starts.append(done))
    assert starts[0] > 2000, "started over instead of going on"
    assert delivered(again) == delivered(whole)
    assert again.manifest == whole.manifest


class KilledAt(durable.FileLayer):
    """Dies when the file of this name is about to appear."""

    def __init__(self, name):
        self.name = name

    def replace(self, path, target):
        if target.name == self.name:
            raise Killed
        super().replace(path, target)


def killed_at(name, plan, out, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(durable, "layer", KilledAt(name))
        with pytest.raises(Killed):
            prepare(plan, out)


@pytest.mark.parametrize("name", ["g000.slices.npy", "g001.slices.npy", "refused.npy", "manifest.json"])
def test_a_preparation_killed_while_it_ends_goes_on(tmp_path, monkeypatch, name):
    source = write(tmp_path, rows_of())
    plan = PreparePlan(source, 2, span=span_of(source))
    whole = prepare(plan, tmp_path / "whole")
    killed_at(name, plan, tmp_path / "out", monkeypatch)
    starts = []
    again = prepare(plan, tmp_path / "out", lambda done, _total: starts.append(done))
    assert starts == [source.path.stat().st_size], "started over instead of going on"
    assert delivered(again) == delivered(whole)
    assert again.manifest == whole.manifest
    assert {file.name for file in again.path.iterdir()} == {file.name for file in whole.path.iterdir()}


def half_done(tmp_path, monkeypatch):
    """A plan whose preparation in `out` was killed after some blocks."""
    monkeypatch.setattr(reading, "CHUNK_BYTES", 2000)
    source = write(tmp_path, rows_of())
    plan = PreparePlan(source, 2, span=span_of(source))

    def kill(done, _total):
        if done > 5000:
            raise Killed

    with pytest.raises(Killed):
        prepare(plan, tmp_path / "out", kill)
    return plan


@pytest.mark.parametrize("left", [0, 100, None])
def test_a_part_that_lost_its_end_is_not_filled_up(tmp_path, monkeypatch, left):
    """A power cut can do this: then what the progress file says is not true."""
    plan = half_done(tmp_path, monkeypatch)
    part = tmp_path / "out" / ".g001.slices.part"
    if left is None:
        part.unlink()
    else:
        part.write_bytes(part.read_bytes()[:left])
    again, whole = prepare(plan, tmp_path / "out"), prepare(plan, tmp_path / "whole")
    assert delivered(again) == delivered(whole)
    assert again.manifest == whole.manifest


def test_what_the_progress_file_vouches_for_is_on_disk_before_it(tmp_path, monkeypatch):
    events = []

    class Watched(durable.FileLayer):
        def sync_file(self, path):
            events.append(path.name)

        def replace(self, path, target):
            events.append(target.name)
            super().replace(path, target)

    monkeypatch.setattr(durable, "layer", Watched())
    half_done(tmp_path, monkeypatch)
    flushed = {name for name in events[: events.index(".progress.json")] if name.endswith(".part")}
    assert flushed == {".g000.slices.part", ".g001.slices.part"}


def test_foreign_files_beside_an_unfinished_preparation_are_left_alone(tmp_path, monkeypatch):
    plan = PreparePlan(write(tmp_path, rows_of()))
    killed_at("refused.npy", plan, tmp_path / "out", monkeypatch)
    (tmp_path / "out" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="is not empty and holds no slices"):
        prepare(plan, tmp_path / "out")
    (tmp_path / "out" / "letter.txt").unlink()
    (tmp_path / "out" / ".progress.json").unlink()
    with pytest.raises(InputError, match="is not empty and holds no slices"):
        prepare(plan, tmp_path / "out")


def test_done_is_done_and_other_options_are_refused(tmp_path):
    source = write(tmp_path, rows_of(5))
    prepare(PreparePlan(source), tmp_path / "out")
    before = (tmp_path / "out" / "g000.slices").stat().st_mtime_ns
    prepare(PreparePlan(source), tmp_path / "out")
    assert (tmp_path / "out" / "g000.slices").stat().st_mtime_ns == before
    with pytest.raises(InputError, match="holds slices of another input or other options"):
        prepare(PreparePlan(source, format="parquet"), tmp_path / "out")


def test_a_foreign_directory_is_left_alone(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="is not empty and holds no slices"):
        prepare(PreparePlan(write(tmp_path, rows_of(2))), tmp_path / "out")
    assert (tmp_path / "out" / "letter.txt").read_text() == "dear"


def test_bad_rows_are_refused_with_place_reason_and_hint(tmp_path):
    rows = rows_of(3)
    rows[4] = [0, 0, 5]
    source = write(tmp_path, rows)
    with pytest.raises(
        InputError,
        match=r"row 5 of rows\.dat breaks the format: not 15 integers\n"
        r"  found:    '0,0,5'\n  hint:     --lenient",
    ):
        prepare(PreparePlan(source), tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())
    slices = prepare(PreparePlan(source, lenient=True), tmp_path / "out")
    text = b"".join(slices.slice(t, 0).data.tobytes() for t in range(3))
    assert text == source.path.read_bytes()
    assert slices.manifest["refused_rows_passed_on"] == slices.manifest["unparsed_rows_passed_on"] == 1


def test_without_any_good_row_all_belong_to_the_first_second(tmp_path, monkeypatch):
    """They are delivered, so that each can become a dead letter; file names hold no second -1."""
    monkeypatch.setattr(reading, "CHUNK_BYTES", 10)
    source = tmp_path / "rows.dat"
    source.write_text("one\ntwo\nthree and four\n")
    slices = prepare(PreparePlan(open_input(source), lenient=True), tmp_path / "out")
    assert (slices.t0, slices.t1) == (0, 1)
    assert slices.slice(0, 0).data.tobytes() == source.read_bytes()
    assert slices.refused[:, 0].tolist() == [0, 0, 0]


def test_rows_that_are_no_numbers_cannot_be_shifted_nor_made_columnar(tmp_path):
    source = write(tmp_path, [*rows_of(2), [1, 2]])
    for plan in (
        PreparePlan(source, format="parquet", lenient=True),
        PreparePlan(source, copies=Copies(2, 1000, 10, 4), lenient=True),
    ):
        with pytest.raises(InputError, match="can neither be shifted nor go into or come out of parquet"):
            prepare(plan, tmp_path / "out")


def test_an_empty_window_is_refused(tmp_path):
    with pytest.raises(InputError, match="no rows to deliver in the asked range"):
        prepare(PreparePlan(write(tmp_path, rows_of(3)), begin=100), tmp_path / "out")


def test_a_damaged_directory_names_the_missing_file(tmp_path):
    prepare(PreparePlan(write(tmp_path, rows_of(3))), tmp_path / "out")
    (tmp_path / "out" / "g000.slices").unlink()
    with pytest.raises(InputError, match=r"lacks its file g000\.slices"):
        open_slices(tmp_path / "out")


def test_an_expressway_may_have_any_number(tmp_path):
    rows = [row(0, 1, 0), row(0, 2, 1_200_000_000), row(1, 3, 2_147_483_647), row(1, 4, 5)]
    source = write(tmp_path, rows)
    slices = prepare(PreparePlan(source, 2, span=span_of(source)), tmp_path / "out")
    assert delivered(slices) == {
        (0, 0): rows[:1],
        (0, 1): rows[1:2],
        (1, 0): rows[3:],
        (1, 1): rows[2:3],
    }
    assert copies_of(span_of(source)) == Copies()


def test_requests_alone_are_an_input_but_cannot_be_copied(tmp_path):
    source = write(tmp_path, [row(t, 7, -1, 2, t) for t in range(3)])
    span = span_of(source)
    assert (span.xways, span.expressways) == (1, 0)
    assert prepare(PreparePlan(source, span=span), tmp_path / "out").manifest["rows"] == 3
    for asked in ({"count": 2}, {"expressways": 4}):
        with pytest.raises(InputError, match="without position reports has no expressways"):
            copies_of(span, **asked)
    (tmp_path / "rubbish.dat").write_text("rubbish\n")
    with pytest.raises(InputError, match="has no row that keeps to the format"):
        span_of(open_input(tmp_path / "rubbish.dat"))
