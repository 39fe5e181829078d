"""`penstock standing serve`: the service over HTTP."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Annotated, TypedDict, Unpack

import typer

from penstock.cli.load import NET_HELP, load_network
from penstock.cli.refusals import FAILED, refusals, refuse
from penstock.cli.shared_options import Durability, TakeOver
from penstock.cli.standing.commands import PORT
from penstock.http import require_web
from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    from penstock.engine.contract.policy import TrainPolicy
    from penstock.http.access import Access
    from penstock.runtime import Runtime
    from penstock.standing.limits import Limits
    from penstock.store import durable
    from penstock.web.look.watched import Watched

# Answer clients quickly, even if trains take a little longer (docs/performance/standing.md):
SWITCH_INTERVAL = 0.0005  # seconds a train's thread may hold the interpreter while an answer waits
LAST_WORDS = 10.0  # seconds for which clients are told that the network has failed
NICE = 5  # Spark and its workers yield the processor to this process


class RunOptions(TypedDict):
    """What a service says about the run of its network, as `Runtime` takes it."""

    policy: TrainPolicy
    master: str | None
    nice: int
    take_over: bool
    durability: durable.Durability


class ServiceOptions(TypedDict):
    """What it says about the queries, as `StandingQueries` takes it."""

    limits: Limits
    memory: int
    keep: str
    stale_after: str


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
            help="Address to bind to. Only this machine can reach loopback; any other address needs --token."
        ),
    ] = "127.0.0.1",
    token: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SECRET",
            help="A client and the secret it must show (repeatable). A client sees only its own queries. "
            "Other users of this machine can read command lines: rather use the variable.",
            envvar="PENSTOCK_TOKENS",
            show_envvar=True,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A host name by which clients reach the service, such as that of a proxy (repeatable).",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Where state, connection points and the registry live; `.penstock/<network>` if left out."
        ),
    ] = None,
    memory: Annotated[
        int, typer.Option(help="Megabytes for tuples and results; older tuples are read from files.")
    ] = 2048,
    max_queries: Annotated[int, typer.Option(help="Standing queries that one token may have.")] = 10_000,
    max_rows: Annotated[int, typer.Option(help="Rows that one answer may have.")] = 1_000_000,
    max_seconds: Annotated[float, typer.Option(help="Seconds that one answer may take.")] = 10.0,
    stale_after: Annotated[
        str,
        typer.Option(help="Refuse answers (503) when the network has made no progress for so long."),
    ] = "2 minutes",
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
    take_over: TakeOver = False,
    durability: Durability = "process",
    master: Annotated[
        str | None, typer.Option(help="Spark master URL; local with all cores if left out.")
    ] = None,
) -> None:
    """Serve standing queries over HTTP; the console is at /, a page of all routes at /docs. Ctrl-C stops.

    Handles and results survive a restart. If the network fails, clients get 503 and the reason, and the
    service ends with exit code 1.
    """
    with refusals():
        require_web()
        from penstock.engine.contract.policy import AsSoonAsPossible
        from penstock.http.access import Access
        from penstock.http.server import take_port
        from penstock.standing.limits import Limits
        from penstock.store.durable import known_durability

        access = Access.of(host, token or (), allow_host or ())
        limits = Limits(queries=max_queries, rows=max_rows, seconds=max_seconds)
        listener = take_port(host, port)
        policy = AsSoonAsPossible(train, interval)
        runtime = _runtime(
            net,
            checkpoint,
            policy=policy,
            master=master,
            nice=nice,
            take_over=take_over,
            durability=known_durability(durability),
        )
        options = ServiceOptions(limits=limits, memory=memory << 20, keep=keep, stale_after=stale_after)
        _serve(runtime, listener, access, options)


def _runtime(net: str | None, checkpoint: Path | None, **more: Unpack[RunOptions]) -> Runtime:
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


def _serve(runtime: Runtime, listener: socket, access: Access, options: ServiceOptions) -> None:
    from penstock.http.server import serve as serve_app
    from penstock.http.server import url_of
    from penstock.standing.serving.routes import standing_app as web_app
    from penstock.standing.serving.service import StandingQueries
    from penstock.web.app import add_console
    from penstock.web.page import is_page
    from penstock.web.routes.queries import SameApp
    from penstock.web.service import ConsoleService

    sys.setswitchinterval(SWITCH_INTERVAL)
    typer.echo("starting Spark ...", err=True)
    failure: PenstockError | None = None
    try:
        with StandingQueries(runtime, **options) as service:
            # A collection looks at all objects and stops everybody meanwhile. Those from the start stay.
            gc.collect()
            gc.freeze()
            url, queries = url_of(listener), len(service.list())
            typer.echo(f"listening on {url}, all routes at /docs, {queries} queries", err=True)
            app = web_app(service, access, is_open=is_page)
            add_console(app, ConsoleService(_watched(runtime)), access, SameApp(app.router))
            serve_app(app, listener, ended=_later(service.freshness.failed))
            failure = service.freshness.failure
    except Exception:
        # What cannot be stopped any more, because its JVM is gone, is no news then.
        if failure is None:
            raise
    if failure is not None:
        refuse(f"the network has failed, so the service has ended\n{failure}", FAILED)


def _watched(runtime: Runtime) -> Watched:
    """What the console shows: the run, or the checkpoint of a network that runs elsewhere."""
    from penstock.standing.serving.points_only_runtime import PointsOnlyRuntime
    from penstock.web.look.watched import RecordedNetwork, RunningNetwork

    if isinstance(runtime, PointsOnlyRuntime):
        return RecordedNetwork(runtime.checkpoint)
    return RunningNetwork(runtime)


def _later(failed: threading.Event) -> threading.Event:
    """Set some time after another event: until then, clients are told the reason."""
    ended = threading.Event()

    def follow() -> None:
        failed.wait()
        ended.wait(LAST_WORDS)
        ended.set()

    threading.Thread(target=follow, name="last-words", daemon=True).start()
    return ended
