"""What the commands about a run under control share: its catalog, its last report, its formats."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Standing:
    """How old what a checkpoint tells is, and what has become of the run that told it.

    `at`: when it was told. `ended`: nothing more will come. `past`: it tells of a run that is over, be it
    that another one has begun. `uncontrolled`: a run without control is going on instead.
    """

    at: float
    ended: bool
    past: bool
    uncontrolled: bool = False
    silent: bool = False  # its process lives, and tells nothing

    @property
    def text(self) -> str:
        """In words."""
        return f"as of {time.time() - self.at:.0f} s ago{self._what}"

    @property
    def _what(self) -> str:
        if self.uncontrolled:
            return "; the run has ended; a run without control is going on"
        if self.silent:
            return "; its process lives, but tells nothing"
        if self.ended:
            return "; the run has ended"
        return "; the run has ended; another has begun, and tells nothing yet" if self.past else ""


def standing(checkpoint: Path, reported: float) -> Standing:
    """Whether the run of this report is over. A busy one may be late with the next; its owner counts on.

    So may one that has just begun, after another: Spark starts before the first report.
    """
    now, sign = time.time(), sign_of_life(checkpoint)
    if sign is None:
        over = now - reported > OLD
        return Standing(reported, over, over)
    if sign.ended or sign.alive is False:
        return Standing(reported, ended=True, past=True)
    ended, later = now - max(reported, sign.since) > _SILENT, reported < sign.since
    alone, silent = ended and later and sign.alive is True, ended and not later and sign.alive is True
    return Standing(reported, ended, ended or later, uncontrolled=alone, silent=silent)


def has_ended(checkpoint: Path, reported: float) -> bool:
    """Whether nothing more will come of the run of this report."""
    return standing(checkpoint, reported).ended


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
