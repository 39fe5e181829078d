"""`penstock standing serve`: the service over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.load import NET_HELP, load_network
from penstock.cli.refusals import refusals
from penstock.cli.standing.commands import PORT
from penstock.http import require_web
from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    from penstock.runtime import Runtime

# Answer clients quickly, even if trains take a little longer (docs/performance/standing.md):
SWITCH_INTERVAL = 0.0005  # seconds a train's thread may hold the interpreter while an answer waits
NICE = 5  # Spark and its workers yield the processor to this process


def serve(
    net: Annotated[
        str | None,
        typer.Argument(
            metavar="[NET]",
            help=f"{NET_HELP} It is run here. Without NET, only the connection points of --checkpoint are "
            "read, while `penstock run` runs the network elsewhere. Without both, the only checkpoint or "
            "network in this directory is taken.",
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="Port to listen on.")] = PORT,
    host: Annotated[
        str,
        typer.Option(
            help="Address to bind to. Only this machine can reach loopback; "
            "put a proxy with accounts in front before you open it to others."
        ),
    ] = "127.0.0.1",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Where state, connection points and the registry live; `.penstock/<network>` if left out."
        ),
    ] = None,
    memory: Annotated[
        int, typer.Option(help="Megabytes for tuples and results; older tuples are read from files.")
    ] = 2048,
    max_queries: Annotated[int, typer.Option(help="Standing queries that one client may have.")] = 10_000,
    max_rows: Annotated[int, typer.Option(help="Rows that one answer may have.")] = 1_000_000,
    keep: Annotated[
        str, typer.Option(help="How long tuples of sources without a connection point are kept.")
    ] = "2 hours",
    train: Annotated[int, typer.Option(help="The most tuples of an input in one train.")] = 500_000,
    interval: Annotated[float, typer.Option(help="Seconds between the departures of two trains.")] = 0.0,
    nice: Annotated[
        int,
        typer.Option(
            help="How much lower the priority of Spark is than the service's own, so that clients do not "
            "wait for trains; 0 where other programs keep the machine busy.",
            min=0,
            max=19,
        ),
    ] = NICE,
    master: Annotated[
        str | None, typer.Option(help="Spark master URL; local with all cores if left out.")
    ] = None,
) -> None:
    """Serve standing queries over HTTP, with an OpenAPI page at /docs. Ctrl-C stops.

    Handles and results survive a restart.
    """
    with refusals():
        require_web()
        from penstock.engine.contract.policy import AsSoonAsPossible
        from penstock.http.server import take_port

        listener = take_port(host, port)
        policy = AsSoonAsPossible(train, interval)
        runtime = _runtime(net, checkpoint, policy=policy, master=master, nice=nice)
        _serve(runtime, listener, memory=memory << 20, limits=(max_queries, max_rows), keep=keep)


def _runtime(net: str | None, checkpoint: Path | None, **more: Any) -> Runtime:
    if net is None and checkpoint is None:
        net, checkpoint = _found_here(Path())
    if net is not None:
        from penstock.runtime import Runtime

        network = load_network(net)
        return Runtime(network, checkpoint=checkpoint or Path(".penstock") / network.name, **more)
    assert checkpoint is not None
    from penstock.standing.serving.points_only_runtime import PointsOnlyRuntime, recorded_network

    return PointsOnlyRuntime(recorded_network(checkpoint), checkpoint=checkpoint, **more)


def _found_here(folder: Path) -> tuple[str | None, Path | None]:
    """Find what to serve if nothing was named.

    That is the only checkpoint in this folder, else the only file with a network.
    """
    checkpoints = sorted(path.parent for path in folder.glob(".penstock/*/catalog.db"))
    if len(checkpoints) == 1:
        typer.echo(f"serving the connection points of {checkpoints[0]}", err=True)
        return None, checkpoints[0]
    files = [] if checkpoints else sorted(path for path in folder.iterdir() if _may_hold_a_network(path))
    if len(files) == 1:
        typer.echo(f"running and serving {files[0]}", err=True)
        return str(files[0]), None
    names = ", ".join(str(path) for path in checkpoints or files)
    raise PenstockError(
        "nothing to serve",
        found=f"several: {names}" if names else "no checkpoint under .penstock/ and no network here",
        hint="name a network (penstock standing serve NET), or the --checkpoint of one that runs elsewhere",
    )


def _may_hold_a_network(path: Path) -> bool:
    """Judge a file by its text, without running it."""
    kinds = {
        ".py": ("penstock", "Network("),
        ".yaml": ("network:", "boxes:"),
        ".yml": ("network:", "boxes:"),
    }
    if not path.is_file() or path.suffix not in kinds:
        return False
    text = path.read_text(errors="replace")
    return all(word in text for word in kinds[path.suffix])


def _serve(runtime: Runtime, listener: socket, *, memory: int, limits: tuple[int, int], keep: str) -> None:
    from penstock.http.server import serve as serve_app
    from penstock.http.server import url_of
    from penstock.standing.limits import Limits
    from penstock.standing.serving.routes import standing_app as web_app
    from penstock.standing.serving.service import StandingQueries

    sys.setswitchinterval(SWITCH_INTERVAL)
    typer.echo("starting Spark ...", err=True)
    with StandingQueries(runtime, limits=Limits(*limits), memory=memory, keep=keep) as service:
        typer.echo(
            f"listening on {url_of(listener)}, OpenAPI page at /docs, {len(service.list())} queries", err=True
        )
        serve_app(web_app(service), listener)
