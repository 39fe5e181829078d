"""What the commands about a run under control share: its catalog, its last report, its formats."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.control.report import REPORT, QosReport
from penstock.model.errors import PenstockError
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions
from penstock.store.ownership import sign_of_life

OLD = 5.0  # seconds: a run tells how it stands each second
_SILENT = 30.0  # after this it is over whatever its owner says: another run without control may own it now


@contextmanager
def catalog_of(checkpoint: Path) -> Iterator[Catalog]:
    """The catalog of a checkpoint."""
    path = checkpoint / "catalog.db"
    if not path.exists():
        raise PenstockError(
            f"{checkpoint} is no checkpoint", found="no catalog.db", hint="give the directory of a run"
        )
    catalog = Catalog(path)
    try:
        yield catalog
    finally:
        catalog.close()


def report_in(catalog: Catalog, checkpoint: Path) -> tuple[float, QosReport]:
    """The last report of a checkpoint, and when it was made."""
    kept = Decisions(catalog).state(REPORT)
    if kept is None:
        raise without_control(checkpoint)
    return kept[0], QosReport.of(kept[1])


def as_of(made_at: float, *, ended: bool) -> str:
    """When something was noted, in words."""
    return f"as of {time.time() - made_at:.0f} s ago{'; the run has ended' if ended else ''}"


def has_ended(checkpoint: Path, reported: float) -> bool:
    """Whether the run of this report is over. A busy one may be late with the next; its owner counts on.

    So may one that has just begun, after another: Spark starts before the first report.
    """
    now, sign = time.time(), sign_of_life(checkpoint)
    if sign is None:
        return now - reported > OLD
    return sign.ended or now - max(reported, sign.since) > _SILENT


def without_control(checkpoint: Path) -> PenstockError:
    """The refusal of a checkpoint whose runs had no control."""
    return PenstockError(
        f"{checkpoint} was never run under control, so there is nothing to show",
        hint="run it with: penstock run NET --qos",
    )


def known_format(form: str) -> None:
    """Refuse a format that there is not."""
    if form not in ("text", "json"):
        raise PenstockError(f"no format '{form}'", expected="text or json")
