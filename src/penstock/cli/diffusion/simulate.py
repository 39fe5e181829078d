"""`penstock diffusion simulate`: options, progress on stderr, the table of claims on stdout."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.cli.refusals import refusals
from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    from penstock.diffusion.claims import Claim


def simulate(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Directory for pictures, table.md and figures.json.")
    ] = Path("out/diffusion"),
    seconds: Annotated[float, typer.Option("--seconds", help="Simulated seconds of each run.")] = 5000.0,
    nodes: Annotated[int, typer.Option("--nodes", help="Servers of the cluster (SE3 always has 10).")] = 100,
    joins: Annotated[int, typer.Option("--joins", help="Joins that run at once (SE3 always has 2).")] = 10,
    servers: Annotated[
        str, typer.Option("--servers", help="Servers per join for SE1 and SE2, as in 1,5,15,30.")
    ] = "",
    only: Annotated[str, typer.Option("--only", help="Some of SE1,SE2,SE3,SE4.")] = "SE1,SE2,SE3,SE4",
    sample: Annotated[
        float, typer.Option("--sample", help="Sampling period of the adaptive scheme, seconds.")
    ] = 50.0,
    placement: Annotated[
        str, typer.Option("--placement", help="Where a master tuple goes: least_loaded or round_robin.")
    ] = "least_loaded",
    when_full: Annotated[
        str,
        typer.Option(
            "--when-full", help="What a full memory does: drop the new tuple or replace an old one."
        ),
    ] = "drop",
    repeats: Annotated[
        int, typer.Option("--repeats", help="Draws of cluster and streams; SE1 and SE2 show the mean.")
    ] = 1,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same figures.")] = 1,
) -> None:
    """Simulate the paper's cluster: 100 heterogeneous servers under static SSP, adaptive SSP and LLF.

    Adaptive SSP runs with both master rules. The experiments are the paper's: SE1 (throughput against servers
    per join), SE2 (utilisation), SE3 (balance) and SE4 (changing rates). The command draws them and prints,
    claim by claim, whether the claim holds here.

    Costs are the paper's too: 50 units for a join operation, 10 for a received tuple. A server has 1,000 to
    5,000 units a second and room for 1,000 to 2,000 tuples.
    """
    with refusals():
        from penstock.diffusion.experiments import SERVERS, Setup
        from penstock.diffusion.report import chosen, report
        from penstock.diffusion.simulate import Scheme

        _positive(seconds=seconds, nodes=nodes, joins=joins, sample=sample, repeats=repeats)
        setup = Setup(
            nodes,
            joins,
            seconds,
            _numbers(servers, nodes) or SERVERS,
            seed,
            repeats,
            Scheme("higher", placement, sample, when_full),
        )
        begin = time.perf_counter()
        with _progress() as show:
            claims = report(setup, out, chosen(only), show)
        Console(width=150).print(_table(claims))
        typer.echo(f"wrote {out}: pictures, table.md, figures.json ({time.perf_counter() - begin:.1f} s)")


def _positive(**values: float) -> None:
    for name, value in values.items():
        if value <= 0:
            raise PenstockError(f"--{name} is {value:g}", expected="a number above 0")


def _numbers(text: str, nodes: int) -> tuple[int, ...]:
    try:
        numbers = tuple(sorted({int(word) for word in text.split(",") if word.strip()}))
    except ValueError:
        raise PenstockError(f"--servers is '{text}'", expected="whole numbers, as in 1,5,15,30") from None
    for k in numbers:
        if not 1 <= k <= nodes:
            raise PenstockError(f"--servers has {k}", expected=f"1 to {nodes}, the nodes of the cluster")
    return numbers


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    columns = (TextColumn("{task.description:>8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}

        def show(step: str, done: int, of: int) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=of)
            bars.update(tasks[step], completed=done, total=of)

        yield show


def _table(claims: list[Claim]) -> Table:
    table = Table(
        title="Load diffusion: the paper's claims and this run", title_justify="left", show_lines=True
    )
    for name, width in (("id", 3), ("paper's claim", 40), ("ours", 40), ("holds", 7), ("why", 44)):
        table.add_column(name, max_width=width)
    for claim in claims:
        table.add_row(claim.id, f"{claim.paper} ({claim.figure})", claim.ours, claim.holds, claim.why)
    return table
