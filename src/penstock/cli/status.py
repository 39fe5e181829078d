"""`penstock status`: what a checkpoint's network has done so far, running or not."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.refusals import refusals
from penstock.model.errors import PenstockError
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import SourceAccount


def status(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="The directory given to `penstock run --checkpoint`.")
    ],
) -> None:
    """Show trains and tuples of each sub-network, and what became of the tuples that each source offered."""
    with refusals():
        path = checkpoint / "catalog.db"
        if not path.exists():
            raise PenstockError(
                f"{checkpoint} is no checkpoint", found="no catalog.db", hint="give the directory of a run"
            )
        catalog = Catalog(path)
        for total in catalog.totals().values():
            typer.echo(f"{total.subnetwork}: {total.rows_in:,} tuples in {total.trains:,} trains")
        for line in account_lines(catalog.accounts().values()):
            typer.echo(line)
        catalog.close()


def account_lines(accounts: Iterable[SourceAccount]) -> list[str]:
    """A line for each source.

    >>> account_lines([SourceAccount("cars", offered=9, let_in=6, dead=2, late=1)])
    ['cars: 9 offered = 6 let in + 2 dead + 1 late + 0 shed']
    """
    return [
        f"{a.source}: {a.offered:,} offered = {a.let_in:,} let in + {a.dead:,} dead + {a.late:,} late "
        f"+ {a.shed:,} shed"
        for a in accounts
    ]
