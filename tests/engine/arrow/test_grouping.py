"""Rows that belong together."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.arrow.columns.grouping import codes_of, groups_of

ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)])),
        st.one_of(st.none(), st.sampled_from(["a", "b", ""])),
        st.one_of(st.none(), st.sampled_from([0.5, float("inf"), -3.0])),
        st.one_of(st.none(), st.booleans()),
    ),
    max_size=12,
)
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64()), ("d", pa.bool_())])


@settings(deadline=None)
@given(ROWS, st.lists(st.sampled_from("abcd"), unique=True), st.booleans())
def test_codes_are_equal_where_the_columns_are(rows, names, dense):
    table = pa.Table.from_pylist([dict(zip("abcd", row, strict=True)) for row in rows], schema=SCHEMA)
    codes = codes_of(table, tuple(names), dense=dense)
    keys = [tuple(row["abcd".index(name)] for name in names) for row in rows]
    groups = groups_of(codes)
    assert {keys[first] for first in groups.first} == set(keys)
    assert len(groups.starts) == len(set(keys))
    for start, size in zip(groups.starts, groups.sizes, strict=True):
        members = groups.order[start : start + size]
        assert list(members) == sorted(members)
        assert len({keys[row] for row in members}) == 1
    if dense:
        assert sorted(set(codes.tolist())) == list(range(len(set(keys))))


def test_ranks_count_within_a_group():
    assert groups_of(np.array([5, 2, 5, 5, 2])).ranks().tolist() == [0, 0, 1, 2, 1]


def test_codes_of_many_rows_leave_room_for_their_numbers():
    """Two columns of more than 2**21 different values each: codes times rows no longer fit 64 bits."""
    a = np.arange(2_200_000) << 40
    groups = groups_of(codes_of(pa.table({"a": a, "b": a[::-1]}), ("a", "b")))
    assert (np.sort(groups.order) == np.arange(len(a))).all()
    assert len(groups.starts) == len(a)
