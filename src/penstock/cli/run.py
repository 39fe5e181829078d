"""`penstock run`: run a network with a live view of rates, latencies and train sizes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.console.options import (
    PORT,
    AllowHostOption,
    ConsoleOptions,
    HostOption,
    OpenOption,
    PortOption,
    ReadTokenOption,
    TokenOption,
)
from penstock.cli.console.run_server import RunServer
from penstock.cli.dead_letters import lateness_advice
from penstock.cli.load import NET_HELP, load_network
from penstock.cli.measure_lines import load_lines, report_lines
from penstock.cli.refusals import FAILED, NOT_VALID, refusals, refuse
from penstock.cli.shared_options import (
    IF_LEFT_OUT,
    Durability,
    HeadroomOption,
    QosOption,
    RecoveryOption,
    TakeOver,
)
from penstock.cli.status import account_lines
from penstock.control.overload import overload_now
from penstock.control.voice import warnings_said
from penstock.model.errors import PenstockError, one_line
from penstock.process.child_process import when_parent_is_gone
from penstock.process.restarting import RestartPolicy, is_supervised, keep_running
from penstock.process.stop_signal import StopSignal
from penstock.store.catalog.decisions import Decisions
from penstock.store.dead_letters import DeadLetters

_SAY_EVERY, _LOOK_EVERY = 60.0, 5.0  # seconds: say that the run falls behind, look whether it does

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table

    from penstock.control.report import QosReport
    from penstock.model.writing.network import Network
    from penstock.runtime import Runtime
    from penstock.runtime.records.train_records import Status


def run(
    net: Annotated[str, typer.Argument(metavar="NET", help=NET_HELP)],
    master: Annotated[
        str | None, typer.Option(help="Spark master URL; local with all cores if left out.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Where state and connection points live; `.penstock/<network>` if left out."),
    ] = None,
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="Read what is there and exit. Windows stay open; the next run goes on with them."
        ),
    ] = False,
    close: Annotated[
        bool,
        typer.Option(
            "--close",
            help="With --once: the input is complete. Close all windows; no more tuples are taken.",
        ),
    ] = False,
    train: Annotated[int, typer.Option(help="At most so many tuples of an input in one train.")] = 500_000,
    max_bytes: Annotated[
        int,
        typer.Option(help="At most so many bytes of an input in one train, or one line or row group.", min=1),
    ] = 256 << 20,
    interval: Annotated[float, typer.Option(help="Seconds between the departures of two trains.")] = 0.0,
    dead_letter_limit: Annotated[
        int | None, typer.Option(help="Fail when more tuples than this had to be refused.")
    ] = None,
    take_over: TakeOver = False,
    durability: Durability = "process",
    recovery: RecoveryOption = "off",
    attempts: Annotated[
        int, typer.Option(help="End when the same train has failed so often, say by lost workers.", min=1)
    ] = 3,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart",
            help="Start again by itself, after a growing pause, when Spark or this process dies; "
            "give up after five short runs.",
        ),
    ] = False,
    qos: QosOption = False,
    headroom: HeadroomOption = None,
    priority: Annotated[
        str | None,
        typer.Option(
            metavar="SCHEME",
            help=f"Under control: 'state', 'feedback', 'round-robin' or 'fifo'. {IF_LEFT_OUT} 'state'.",
        ),
    ] = None,
    shed: Annotated[
        bool | None,
        typer.Option(
            "--shed/--no-shed", help=f"Under control: whether tuples may be dropped. {IF_LEFT_OUT} --shed."
        ),
    ] = None,
    observe: Annotated[
        bool | None,
        typer.Option(
            "--observe/--no-observe",
            help=f"Under control: log what would be done, and do nothing. {IF_LEFT_OUT} --no-observe.",
        ),
    ] = None,
    optimize: Annotated[
        bool | None,
        typer.Option(
            "--optimize/--no-optimize",
            help="Rewrite sub-networks while they run, by measured costs, where that saves CPU; "
            "the rows stay the same. `penstock qos why` tells each change.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No live view, only the summary.")] = False,
    console: Annotated[
        bool, typer.Option("--console", help="Show the network in a browser, to steer and edit it there.")
    ] = False,
    metrics: Annotated[
        int | None, typer.Option("--metrics", metavar="PORT", help="Serve /metrics for Prometheus there.")
    ] = None,
    port: PortOption = PORT,
    open_: OpenOption = False,
    host: HostOption = "127.0.0.1",
    token: TokenOption = None,
    read_token: ReadTokenOption = None,
    allow_host: AllowHostOption = None,
) -> None:
    """Run a network. Ctrl-C finishes the current train and stops.

    Run again with the same checkpoint, the network resumes where it stopped.

    Files are for you only (0600); PENSTOCK_UMASK=027 in the environment gives others more.

    Exit codes: 0 done or stopped, 1 failed on the way (the same command may succeed), 2 refused, 3 every
    tuple was refused.
    """
    if restart:
        raise typer.Exit(_supervise())
    from penstock.engine.spark.trains.failures import PassingFailureError

    with refusals({PassingFailureError: FAILED}):
        network = load_network(net)
        from penstock.control.options import control_for
        from penstock.engine.contract.policy import AsSoonAsPossible
        from penstock.runtime import Runtime
        from penstock.store.durable import known_durability

        checkpoint_dir = checkpoint or Path(".penstock") / network.name
        policy = AsSoonAsPossible(train, interval, max_bytes)
        control = control_for(network, qos, headroom, priority, shed=shed, observe=observe, optimize=optimize)
        runtime = Runtime(
            network,
            control=control,
            checkpoint=checkpoint_dir,
            once=once,
            close=close,
            policy=policy,
            dead_letter_limit=dead_letter_limit,
            master=master,
            take_over=take_over,
            durability=known_durability(durability),
            recovery=recovery,
            attempts=attempts,
        )
        options = ConsoleOptions(port, host, open_, token or (), read_token or (), allow_host or ())
        server = RunServer(runtime, options, page=console, metrics=metrics)
        terminal = _terminal()
        with StopSignal().on_signals() as stop, warnings_said(_lines_on(terminal)):
            if is_supervised():
                when_parent_is_gone(stop.set)
            try:
                runtime.start()
                stop.take_signals()  # Spark has installed its own handler
                server.start()
                _watch(runtime, stop, terminal, quiet=quiet)
            finally:
                server.stop()
                status = runtime.status() if runtime.records is not None else None
                runtime.stop()
        if status is not None:
            _summary(status, checkpoint_dir, stopped=stop.is_set())
            _refuse_if_all_refused(status, checkpoint_dir)


def _supervise() -> int:
    """Run the same command without --restart as a child, again and again."""
    words = [word for word in sys.argv[1:] if word != "--restart"]
    command = [sys.executable, "-m", "penstock.cli.main", *words]
    with StopSignal().on_signals() as stop:
        return keep_running(command, RestartPolicy((FAILED,)), stop, lambda text: typer.echo(text, err=True))


def _refuse_if_all_refused(status: Status, checkpoint_dir: Path) -> None:
    totals = status.this_run
    if totals.all_refused:
        counts = DeadLetters(checkpoint_dir).counts()
        reason, times = next(iter(counts.items()), ("", 0))
        error = PenstockError(
            f"every tuple of this run was refused: {totals.dead:,} of {totals.offered:,}",
            found=f"most often: {one_line(reason, 200)} ({times:,})",
            hint=f"do format and schema of the source fit? See: penstock dead-letters {checkpoint_dir}",
        )
        refuse(str(error), NOT_VALID)


def _watch(runtime: Runtime, stop: StopSignal, console: Console, *, quiet: bool) -> None:
    """Watch until the input is used up (`--once`), a signal comes, or something fails."""
    from rich.live import Live

    say = _lines_on(console)
    live = (
        Live(console=console, refresh_per_second=4, transient=True)
        if not quiet and sys.stderr.isatty()
        else None
    )
    try:
        if live is not None:
            live.start()
        overload = _Overload(say)
        observed = _Observed(say)
        while not stop.is_set():
            if runtime.once and runtime.wait(timeout=0.2):
                return
            runtime.check()
            overload.look(runtime)
            observed.look(runtime)
            if live is not None:
                live.update(view(runtime.network, runtime.status(), _report(runtime)))
            if not runtime.once:
                time.sleep(0.25)
    finally:
        if live is not None:
            live.stop()


def _terminal() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def _lines_on(console: Console) -> Callable[[str], None]:
    return partial(console.print, markup=False, highlight=False, soft_wrap=True)


def _report(runtime: Runtime) -> QosReport | None:
    return runtime.qos() if getattr(runtime.control, "rates_outputs", False) else None


class _Observed:
    """Says what control would do: nothing is applied with --observe, so it would be seen nowhere else."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._since, self._next, self._last = say, time.time(), 0.0, 0

    def look(self, runtime: Runtime) -> None:
        observing = getattr(getattr(runtime.control, "settings", None), "observe", False)
        if not observing or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + 1
        for each in Decisions(runtime.running_records().catalog).last(after=self._last):
            self._last = each.id
            if each.time >= self._since:  # not one of an earlier run
                self._say(each.sentence)


class _Overload:
    """Says once a minute that the run cannot keep up."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._next = say, 0.0

    def look(self, runtime: Runtime) -> None:
        now = time.monotonic()
        if now < self._next or runtime.records is None:
            return
        behind = overload_now(runtime.records.catalog, time.time())
        for each in behind:
            self._say(f"falls behind: {each}")
        self._next = now + (_SAY_EVERY if behind else _LOOK_EVERY)


def view(network: Network, status: Status, report: QosReport | None = None) -> Group:
    """The live view: a table of sub-networks, one of arrows, one of outputs; under control, utilities too."""
    from rich.console import Group
    from rich.table import Table

    subs = Table(title=f"network '{network.name}'", title_justify="left")
    for heading in (
        "sub-network",
        "trains",
        "tuples",
        "tuples/s",
        "last train",
        "train s",
        "batch s",
        "idle inputs",
    ):
        subs.add_column(heading, justify="left" if heading in ("sub-network", "idle inputs") else "right")
    for sub in status.subnetworks:
        subs.add_row(
            sub.name,
            str(sub.trains),
            f"{sub.rows:,}",
            f"{sub.rate:,.0f}",
            f"{sub.length:,}",
            f"{sub.train:.2f}",
            f"{sub.trigger:.2f}",
            ", ".join(sub.idle),
        )
    outputs = Table()
    for heading in ("output", "latency p50 s", "p95", "p99", "max"):
        outputs.add_column(heading, justify="left" if heading == "output" else "right")
    for name, latency in status.latency.items():
        outputs.add_row(name, *(f"{x:.2f}" for x in (latency.p50, latency.p95, latency.p99, latency.max)))
    sources = [*account_lines(status.accounts.values()), *load_lines(status.inputs)]
    under_control = [] if report is None else report_lines(report)
    return Group(subs, *sources, _arrows(status), outputs, *under_control, f"dead letters: {status.dead:,}")


def _arrows(status: Status) -> Table:
    """Tuples into and out of each box: in all, a second, in the last train. '~' marks estimates."""
    from rich.table import Table

    arrows = Table()
    for heading in ("box", "in", "in/s", "last train", "out", "out/s", "last train", "selectivity", "dead"):
        arrows.add_column(heading, justify="left" if heading == "box" else "right")
    for name, count in status.boxes.items():
        about = "~" if count.estimated else ""
        cells = [f"{count.rows_in:,}", "", "", f"{count.rows_out:,}", "", ""]
        if (flow := status.flows.get(name)) is not None:
            cells[1:3] = f"{flow.rate_in:,.0f}", f"{flow.train_in:,}"
            cells[4:] = f"{flow.rate_out:,.0f}", f"{flow.train_out:,}"
        ratio = "" if count.selectivity is None else f"{about}{count.selectivity:.3f}"
        cells = [f"{about}{cell}" if cell else "" for cell in cells]
        arrows.add_row(name, *cells, ratio, f"{count.dead:,}" if count.dead else "")
    return arrows


def _summary(status: Status, checkpoint_dir: Path, *, stopped: bool) -> None:
    for sub in status.subnetworks:
        typer.echo(f"{sub.name}: {sub.rows:,} tuples in {sub.trains} trains")
    for line in account_lines(status.accounts.values()):
        typer.echo(line)
    for name, latency in status.latency.items():
        typer.echo(
            f"{name}: latency p50 {latency.p50:.2f} s, p99 {latency.p99:.2f} s, max {latency.max:.2f} s"
        )
    late = [(a.source, a.late, a.offered) for a in status.accounts.values()]
    for line in lateness_advice(DeadLetters(checkpoint_dir), late):
        typer.echo(line)
    if status.dead:
        typer.echo(f"dead letters: {status.dead:,}; see: penstock dead-letters {checkpoint_dir}")
    if stopped:
        typer.echo(f"stopped; the same command goes on from {checkpoint_dir}")
