"""Blocks of lines are left out before decoding: what stays is as if all had been decoded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.files.text import ByteRange
from penstock.connectors.rows import SpoolFile
from penstock.connectors.tables import first_seq
from penstock.model.boxes import Source
from penstock.model.formats.files import csv, json
from penstock.model.types import SEQ

CSV = csv("in", "a INT, b STRING", comment="#")
JSON = json("in", "a INT, b STRING")


@dataclass(frozen=True)
class Numbers:
    """Keeps these blocks."""

    kept: frozenset[int]
    bits: int

    def __call__(self, numbers):
        return np.array([int(number) in self.kept for number in numbers], bool)


def source(format_):
    return Source(name="s", format=format_, schema=format_.schema)


def as_sets(decoded):
    seqs = decoded.tuples.column(SEQ).to_pylist()
    rows = decoded.tuples.drop_columns([SEQ]).to_pylist()
    good = {seq: tuple(row.values()) for seq, row in zip(seqs, rows, strict=True)}
    bad = {row["offset"]: row["raw"] for row in decoded.refused.to_pylist()}
    return good, bad


LINES = st.lists(
    st.sampled_from([b"1,x", b"2,y", b"", b"\r", b"# no row", b"broken", b"3,z\r", b"notint,q"]), max_size=20
)


@given(LINES, st.integers(0, 9), st.sets(st.integers(0, 30)), st.booleans())
def test_what_stays_is_what_decoding_all_would_give(lines, line, kept, ends):
    text = b"\n".join(lines) + (b"\n" if lines and ends else b"")
    piece = ByteRange("f", 1, 0, len(text), line)
    base = first_seq(1) >> 2
    stays = Numbers(frozenset(base + block for block in kept), 2)
    whole, offered = piece.decode(source(CSV), text), piece.offered(source(CSV), text)
    thin = piece.thinned(source(CSV), text, stays)
    good, bad = as_sets(whole)
    expected = {seq: row for seq, row in good.items() if seq >> 2 in stays.kept}
    letters = {seq: raw for seq, raw in bad.items() if seq >> 2 in stays.kept}
    assert as_sets(thin.decoded) == (expected, letters)
    assert thin.offered == offered
    assert thin.offered == len(expected) + len(letters) + thin.shed


def test_the_last_row_of_each_block_tells_the_time():
    text = b"1,a\n2,b\n3,c\n\n5,e\n6,f\nbad\n# comment\n9,i\n"
    thin = ByteRange("f", 0, 0, len(text), 0).thinned(source(CSV), text, Numbers(frozenset(), 2))
    # The second block ends with a line that is refused, so nobody knows its time.
    assert thin.last.column("a").to_pylist() == [3, 9]
    assert (thin.offered, thin.shed, thin.decoded.tuples.num_rows) == (7, 7, 0)


@pytest.mark.parametrize("line", [0, 1023, 1024, 1500])
def test_blocks_are_those_of_the_file_however_it_is_cut(line):
    rows = b"".join(b'{"a": %d}\n' % n for n in range(line, 5000))
    thin = ByteRange("f", 0, 0, len(rows), line).thinned(source(JSON), rows, Numbers(frozenset({1, 3}), 10))
    seqs = thin.decoded.tuples.column(SEQ).to_pylist()
    assert seqs == [n for n in range(line, 5000) if n >> 10 in (1, 3)]
    assert thin.decoded.tuples.column("a").to_pylist() == seqs


def test_a_header_is_no_line_of_a_block():
    format_ = csv("in", "a INT, b STRING", header=True)
    text = b"a,b\n" + b"".join(b"%d,x\n" % n for n in range(1, 3000))
    piece = ByteRange("f", 0, 0, len(text), 0, header=1, columns=("a", "b"))
    thin = piece.thinned(source(format_), text, Numbers(frozenset({1}), 10))
    assert thin.decoded.tuples.column("a").to_pylist() == list(range(1024, 2048))
    assert (thin.offered, thin.shed) == (2999, 2999 - 1024)


def test_rows_that_were_given_are_lines_too():
    text = b"".join(b'{"a": %d}\n' % n for n in range(3000))
    thin = SpoolFile("f", 0, 3000).thinned(source(JSON), text, Numbers(frozenset({2}), 10))
    assert thin.decoded.tuples.column(SEQ).to_pylist() == list(range(2048, 3000))
    assert thin.last.column("a").to_pylist() == [1023, 2047]
