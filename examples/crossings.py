"""Linear Road rows through fused boxes with state: which vehicles cross segments, and how often.

    .venv/bin/python examples/crossings.py ROWS.dat [OUT]     # rows of type 0 as in the benchmark; made up if
    left out

Two Latch boxes with vectorised functions, both grouped by vehicle, run fused: one crossing into Python for
each train, one state version for each partition. Kill it at any moment (kill -9) and start it again: the rows
are the same.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import penstock as ps

SCHEMA = (
    "type INT, time TIMESTAMP, vid INT, spd INT, xway INT, lane INT, dir INT, seg INT, pos INT, "
    "qid INT, sinit INT, send INT, dow INT, tod INT, day INT"
)


def track(batch: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """For each report the segment of the vehicle's report before it, -1 for its first.

    The state is each one's last.
    """
    vid, seg = batch["vid"].to_numpy(), batch["seg"].to_numpy()
    known_vid, known_seg = state["vid"].to_numpy(), state["last_seg"].to_numpy()
    order = np.argsort(vid, kind="stable")  # the batch is in order of time, so each vehicle's reports stay so
    sorted_vid, sorted_seg = vid[order], seg[order]
    before = np.roll(sorted_seg, 1)
    first = np.ones(len(vid), bool)
    first[1:] = sorted_vid[1:] != sorted_vid[:-1]
    where = np.argsort(known_vid)
    if len(known_vid):
        at = np.minimum(np.searchsorted(known_vid[where], sorted_vid), len(known_vid) - 1)
        remembered = np.where(known_vid[where][at] == sorted_vid, known_seg[where][at], -1)
    else:
        remembered = np.full(len(vid), -1)
    before = np.where(first, remembered, before)
    previous = np.empty(len(vid), np.int32)
    previous[order] = before
    last = np.append(np.flatnonzero(first)[1:] - 1, len(vid) - 1) if len(vid) else np.array([], np.int64)
    changed = pa.table(
        {"vid": pa.array(sorted_vid[last], pa.int32()), "last_seg": pa.array(sorted_seg[last], pa.int32())}
    )
    return batch.select(["time", "vid", "xway", "dir", "seg"]).append_column(
        "previous", pa.array(previous)
    ), changed


def count(batch: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The number of each vehicle's crossings so far."""
    vid = batch["vid"].to_numpy()
    so_far = dict(zip(state["vid"].to_pylist(), state["crossings"].to_pylist(), strict=True))
    numbers = []
    for vehicle in vid.tolist():
        so_far[vehicle] = so_far.get(vehicle, 0) + 1
        numbers.append(so_far[vehicle])
    changed = pa.table(
        {"vid": pa.array(list(so_far), pa.int32()), "crossings": pa.array(list(so_far.values()), pa.int64())}
    )
    return batch.append_column("crossings", pa.array(numbers, pa.int64())), changed


def network(rows: str, out: str) -> ps.Network:
    """Reports, tracked by vehicle, then counted."""
    net = ps.Network("crossings")
    reports = net.source("reports", ps.csv(rows, schema=SCHEMA), timestamp="time", whole=False)
    moving = reports.filter("type = 0 AND lane <> 4", name="moving").group_by("vid")
    places = "time TIMESTAMP, vid INT, xway INT, dir INT, seg INT, previous INT"
    tracked = moving.latch(function=track, state="last_seg INT", produces=places, name="track")
    crossed = tracked.filter("previous >= 0 AND previous <> seg", name="crossed").group_by("vid")
    counted = crossed.latch(
        function=count, state="crossings BIGINT", produces=places + ", crossings BIGINT", name="count"
    )
    net.output("crossings", counted, to=ps.csv(out, header=True))
    return net


def main(rows: str | None, out: Path) -> None:
    """Run over what is there and say how much it was."""
    if rows is None:
        from penstock.linear_road.traffic.generate import generate

        generate(out / "rows", xways=0.5, minutes=6, seed=1)
        rows = str(out / "rows" / "*.csv") if list((out / "rows").glob("*.csv")) else str(out / "rows")
    net = network(rows, str(out / "crossings"))
    with ps.Runtime(net, checkpoint=out / "checkpoint", once=True, close=True) as running:
        running.wait()
        for name, counts in running.status().boxes.items():
            print(f"{name:<12} in {counts.rows_in:>9,}  out {counts.rows_out:>9,}")
    lines = sum(len(f.read_text().splitlines()) - 1 for f in (out / "crossings").glob("*.csv"))
    print(f"{lines:,} crossings in {out / 'crossings'}")


if __name__ == "__main__":
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.mkdtemp(prefix="penstock-crossings-"))
    main(sys.argv[1] if len(sys.argv) > 1 else None, folder)
