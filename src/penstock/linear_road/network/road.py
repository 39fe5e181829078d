"""The network: sources, superboxes, outputs with the delays of the benchmark.

Read it from top to bottom as rows flow. Each group of expressways lives in one partition, so everything up to
tolls happens where the rows arrive. Only charges and balance requests move on, to the partition of their
vehicle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import penstock as ps
from penstock.linear_road.network import accidents, accounts, statistics, tolls, tracking
from penstock.linear_road.network.emit import EmitStamp
from penstock.linear_road.network.past import DailyExpenditure, TravelTime, load_history
from penstock.linear_road.network.rows_in import SCHEMA, decode

DELAYS = {"tolls": 5, "alerts": 5, "balances": 5, "daily": 10, "travel": 30}
"""The outputs and the seconds within which each must answer."""

_BY_VEHICLE = "balances"
"""The output that knows no expressways: while some are left out, it lacks their charges."""


def road_network(
    history: Path | None, source: Path, answers: Path, clock: Path | None = None, *, speed: float = 1.0
) -> ps.Network:
    """Linear Road: answers what a driver delivers to `source` into `answers`.

    `source`: the directory that `penstock lr drive --to` fills (it may still be empty or missing). `history`:
    a directory with TollHistory and SegmentHistory, as `penstock lr history` or the validator take it; None:
    there is none. `answers`: gets one directory for each output (`tolls`, `alerts`, `balances`, `daily`,
    `travel`). Each has CSV files of finished rows in the field order of the semantics page, type first.
    `clock`: the file or directory with the run's clock (`Clock.load`), by default `source`; it is read when
    the first answer is written. At maximum speed Emit = Time. `speed`: of that clock, infinite at maximum
    speed; the delays of outputs are in real seconds. Under control whole groups of expressways go, so boxes
    say `shed: keys`.
    """
    net = ps.Network("linear_road")
    # `whole`: a train never splits a second, so no later train brings more of it. `idle=None`: however long
    # the driver pauses, the network waits for it.
    rows = net.source(
        "rows",
        ps.feed(str(source), SCHEMA, decode=decode, keys="XWay"),
        timestamp="Second",
        whole=True,
        idle=None,
    )
    stamp = EmitStamp(str(clock or source))
    pace = speed if math.isfinite(speed) else 1.0  # without a clock nothing is late

    tracked = _tracking(net, rows)
    tolls = _tolls(net, tracked, _statistics(net, tracked), _accidents(net, tracked))
    asked = rows.filter("Type > 0", name="requests")
    balances = _accounts(net, tolls, asked)
    past = None if history is None else str(load_history(Path(history)))
    daily, travel = _daily(net, asked, past), _travel(net, asked, past)

    for name, stream in _answers(tolls, balances, daily, travel):
        sink = ps.stamped(ps.csv(str(Path(answers) / name)), stamp)
        net.output(name, stream, to=sink, qos=_within(DELAYS[name] / pace, by_vehicle=name == _BY_VEHICLE))
    return net


def _answers(
    tolls: ps.Stream, balances: ps.Stream, daily: ps.Stream, travel: ps.Stream
) -> Iterator[tuple[str, ps.Stream]]:
    """The finished rows of each output. `Emit` holds the Time until the answer leaves and gets its stamp."""
    notices, alerts = tolls.filter("Kind = 0", name="notices"), tolls.filter("Kind = 1", name="alarms")
    fields = {
        "tolls": (notices, ("VID", "Time", "Emit", "Lav", "Toll")),
        "alerts": (alerts, ("Time", "Emit", "VID", "Seg")),
        "balances": (balances, ("Time", "Emit", "ResultTime", "QID", "Bal")),
        "daily": (daily, ("Time", "Emit", "QID", "Bal")),
        "travel": (travel, ("Time", "Emit", "QID", "TravelTime", "Toll")),
    }
    for kind, (name, (stream, columns)) in enumerate(fields.items()):
        expressions = {column: "Time" if column == "Emit" else column for column in columns}
        yield name, stream.select({"Type": str(kind), **expressions}, name=f"{name}_rows")


def _within(seconds: float, *, by_vehicle: bool) -> ps.QoS:
    """All or nothing, as in the benchmark: an answer in time is worth 1, a late one 0.

    Of what is left out, each expressway is worth the same.
    """
    delay = ((0, 1), (seconds, 1), (seconds + 0.001, 0))
    return ps.QoS(delay=delay, loss=((0, 0), (100, 1)), approximate=by_vehicle)


def _tracking(net: ps.Network, rows: ps.Stream) -> ps.Stream:
    """Find the reports that begin a trip, enter or leave a segment, or stand still."""
    with net.group("vehicle tracking", description="trips, segments entered and left, vehicles that stand"):
        columns = ("Second", "Type", "VID", "XWay", "Dir", "Lane", "Seg", "Pos", "Spd")
        reports = rows.select(*columns, name="report_fields").filter("Type = 0", name="reports")
        grouped = reports.group_by("XWay", name="by_expressway")
        tracked = grouped.column_latch(tracking.Tracking, produces=tracking.PRODUCES, name="track")
        return tracked.shed("keys")


def _statistics(net: ps.Network, tracked: ps.Stream) -> ps.Stream:
    """Cars and latest average velocity, minute by minute.

    They are kept for an hour, so that they can be queried while the network runs.
    """
    with net.group(
        "segment statistics", description="cars and Lav of each road segment, when its minute is over"
    ):
        grouped = tracked.group_by("XWay", name="segments")
        figures = grouped.column_latch(statistics.Statistics, produces=statistics.PRODUCES, name="minutes")
        # Tolls read the stream, not the point: a point would cut the network into two queries.
        figures.connection_point("figures", keep="1 hour", key="XWay", shed=True)
        return figures.shed("keys")


def _accidents(net: ps.Network, tracked: ps.Stream) -> ps.Stream:
    """Where two vehicles stand at one location, minute by minute."""
    with net.group("accidents", description="two vehicles stopped at one place"):
        standing = tracked.filter("Stops > 0", name="standing").group_by("XWay", name="places")
        wrecks = standing.column_latch(accidents.Accidents, produces=accidents.PRODUCES, name="accidents")
        return wrecks.shed("keys")


def _tolls(net: ps.Network, tracked: ps.Stream, minutes: ps.Stream, wrecks: ps.Stream) -> ps.Stream:
    """Notices, alerts, charges: when a vehicle moves, its minute's figures and accidents are known."""
    with net.group(
        "tolls", description="what a vehicle is told when it enters a segment and charged when it leaves"
    ):
        moves = tracked.filter("Moves > 0", name="moves").group_by("XWay", name="moves_by_expressway")
        figures = minutes.group_by("XWay", name="figures_by_expressway")
        accidents = wrecks.group_by("XWay", name="accidents_by_expressway")
        quoted = ps.column_latch(
            [moves, figures, accidents], tolls.Tolls, produces=tolls.PRODUCES, name="quote"
        )
        return quoted.shed("keys")


def _accounts(net: ps.Network, tolls: ps.Stream, asked: ps.Stream) -> ps.Stream:
    """Bring charges and balance requests to their vehicle: only these leave their expressway."""
    with net.group("accounts", description="one account a vehicle, whatever expressways it drives on"):
        charges = tolls.filter("Kind = 2", name="charges").select(
            "Second", "Time", "VID", "Toll", QID="-1", name="charge_entries"
        )
        requests = asked.filter("Type = 2", name="balance_requests").select(
            "Second", "Time", "VID", "QID", Toll="0", name="request_fields"
        )
        # A union takes streams with the same columns in the same order.
        ordered = requests.select("Second", "Time", "VID", "Toll", "QID", name="request_entries")
        entries = charges.union(ordered, name="entries").group_by("VID", name="by_vehicle")
        kept = entries.column_latch(accounts.Accounts, produces=accounts.PRODUCES, name="accounts")
        return kept.shed("keys")


def _daily(net: ps.Network, asked: ps.Stream, past: str | None) -> ps.Stream:
    """What a vehicle has spent on a day of the last ten weeks."""
    with net.group("daily expenditure", description="look-ups in TollHistory"):
        requests = asked.filter("Type = 3", name="daily_requests")
        return requests.apply(
            DailyExpenditure(past), reads=("VID", "XWay", "Day"), produces="Bal BIGINT", name="look_up_day"
        )


def _travel(net: ps.Network, asked: ps.Stream, past: str | None) -> ps.Stream:
    """How long a journey takes and what it costs, by the means of earlier weeks."""
    with net.group("travel time", description="journeys through the means of SegmentHistory"):
        requests = asked.filter("Type = 4", name="travel_requests")
        return requests.apply(
            TravelTime(past),
            reads=("XWay", "Sinit", "Send", "DOW", "TOD"),
            produces="TravelTime BIGINT, Toll BIGINT",
            name="drive_through",
        )
