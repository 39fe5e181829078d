"""`penstock status`: what a checkpoint's network has done so far, running or not."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.measure_lines import cost_lines, load_lines, utility_lines
from penstock.cli.refusals import refusals
from penstock.control.costs import costs_from
from penstock.control.overload import overload_now
from penstock.model.errors import PenstockError
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import SourceAccount


def status(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="The directory given to `penstock run --checkpoint`.")
    ],
) -> None:
    """Show what a network has done: trains, tuples offered, what waits, costs, utilities of outputs.

    If it runs and cannot keep up, the last line says how far it is behind.
    """
    with refusals():
        path = checkpoint / "catalog.db"
        if not path.exists():
            raise PenstockError(
                f"{checkpoint} is no checkpoint", found="no catalog.db", hint="give the directory of a run"
            )
        catalog = Catalog(path)
        for total in catalog.totals().values():
            typer.echo(f"{total.subnetwork}: {total.rows_in:,} tuples in {total.trains:,} trains")
        for line in (*account_lines(catalog.accounts().values()), *_measured(catalog)):
            typer.echo(line)
        catalog.close()


def _measured(catalog: Catalog) -> list[str]:
    """Load, costs and utilities, as the run last measured them."""
    topology = catalog.topology()
    qos = {node.name: node.qos for node in topology.nodes if node.qos is not None} if topology else {}
    behind = [f"falls behind: {each}" for each in overload_now(catalog, time.time())]
    return [
        *load_lines(catalog.loads()),
        *cost_lines(costs_from(catalog)),
        *utility_lines(qos, catalog.output_seconds(60)),
        *behind,
    ]


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
