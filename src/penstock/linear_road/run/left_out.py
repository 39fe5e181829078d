"""Which expressways a run under control has left out, and in which seconds."""

from __future__ import annotations

from pathlib import Path

from penstock.linear_road.drive.driver import Feed
from penstock.linear_road.validate.answer_files import LeftOut
from penstock.runtime.records.left_out import EVENT, absences
from penstock.store.catalog.catalog import Catalog

_SECOND = 1_000_000


def left_out(checkpoint: Path, feed: Feed) -> list[LeftOut]:
    """What the catalog of a run tells, by group of expressways."""
    catalog = Catalog(checkpoint / "catalog.db")
    try:
        events = catalog.events(EVENT, last=catalog.keep)
    finally:
        catalog.close()
    return [
        {
            "xways": feed.roads(each.group),
            "begin": each.begin // _SECOND,
            "until": feed.end if each.end is None else each.end // _SECOND,
        }
        for each in absences(events)
    ]
