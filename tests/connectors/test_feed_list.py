"""The list of a feed's deliveries: it only grows."""

from __future__ import annotations

import json

import pytest

import penstock as ps
from penstock.connectors.loading import input_for
from penstock.model.boxes import Source
from penstock.model.errors import PenstockError, Where
from penstock.model.formats.feed import LISTING
from penstock.model.types import Schema

SCHEMA = "k STRING, v INT"


def decoded(chunk):
    raise AssertionError("nothing is decoded here")


def list_deliveries(folder, times):
    lines = [json.dumps({"at": at, "files": [[f"t{at:06d}", 0, 4, 1]]}) for at in times]
    (folder / LISTING).write_text("".join(f"{line}\n" for line in lines))


def test_a_list_that_was_cut_is_refused(tmp_path):
    """What a new writer lists would be taken for what was read, up to the old position."""
    source = Source(
        name="cars",
        where=Where(),
        format=ps.feed(str(tmp_path), SCHEMA, decode=decoded),
        schema=Schema.parse(SCHEMA),
    )
    list_deliveries(tmp_path, range(10, 20))
    taken = input_for(source, tmp_path / "memory").take(None, 1000)
    assert len(taken.slices) == 10
    list_deliveries(tmp_path, range(10, 15))
    with pytest.raises(PenstockError, match="shorter than what was read of it"):
        input_for(source, tmp_path / "memory").take(taken.position, 1000)
