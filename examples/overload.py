"""A minute of overload: what control does when more comes than can be done, and how it undoes that.

    python examples/overload.py [FOLDER]

Cars report their speed. `alarms` must come within two seconds, all of them; `means` of ten seconds may lose
some; `scores` cost most of the CPU and may lose most. First a calm phase finds out what this machine can do.
Then, for half of the time, twice as much comes. Watch the shares fall and rise again; the picture
overload.svg in FOLDER shows it.
"""

from __future__ import annotations

import argparse
import math
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps
from penstock.control.report import QosReport

MADE = ("in", "alarms", "means", "scores", "checkpoint", "overload.svg")
"""What a run leaves in its folder."""
FIRST_RATE = 4_000
"""Tuples a second while Spark warms up."""
EVERY = 0.25
FACTOR = 2.0
HEADROOM = 0.9
ROUNDS = 3000  # of arithmetic for one score


def score(table: pa.Table) -> pa.Table:
    """Something expensive."""
    x = table["spd"].to_numpy().astype(np.float64)
    for _ in range(ROUNDS):
        x = np.sqrt(x * x + 1.0)
    return pa.table({"score": x})


def network(folder: Path) -> ps.Network:
    """One source, three outputs of different strictness and cost."""
    net = ps.Network("overload")
    schema = "time TIMESTAMP, seg INT, spd INT"
    cars = net.source("cars", ps.csv(f"{folder}/in", schema=schema, settle="0 seconds"), timestamp="time")
    strict = ps.QoS(delay=[(0, 1.0), (2, 1.0), (6, 0.0)], weight=4)
    net.output("alarms", cars.filter("spd > 97", name="fast"), to=ps.parquet(f"{folder}/alarms"), qos=strict)
    tolerant = ps.QoS(delay=[(0, 1.0), (8, 1.0), (20, 0.0)], loss=[(0, 0), (50, 0.9), (100, 1)])
    tens = cars.group_by("seg", name="by_segment").tumble("10 seconds", speed="avg(spd)", name="tens")
    net.output("means", tens, to=ps.parquet(f"{folder}/means"), qos=tolerant)
    costly = ps.QoS(delay=[(0, 1.0), (4, 1.0), (12, 0.0)], loss=[(0, 0), (30, 0.7), (100, 1)], weight=2)
    scored = cars.apply(score, reads="spd", produces="score DOUBLE", name="score")
    net.output("scores", scored, to=ps.parquet(f"{folder}/scores"), qos=costly)
    return net


class Driver(threading.Thread):
    """Puts a file of tuples into a folder four times a second, at a rate that may change."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self._folder, self._over, self.rate = folder, threading.Event(), FIRST_RATE
        dice = np.random.default_rng(7)
        tails = zip(dice.integers(0, 50, 200_000), dice.integers(0, 100, 200_000), strict=True)
        self._tails = [f",{segment},{speed}\n" for segment, speed in tails]

    def run(self) -> None:
        """Until it is stopped."""
        number, due = 0, time.monotonic()
        while not self._over.is_set():
            count = min(len(self._tails), int(self.rate * EVERY))
            at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            hidden = self._folder / f".{number:06d}"
            hidden.write_text("".join([at + tail for tail in self._tails[:count]]))
            hidden.rename(self._folder / f"{number:06d}.csv")
            number, due = number + 1, due + EVERY
            self._over.wait(max(0.0, due - time.monotonic()))

    def stop(self) -> None:
        """No more files."""
        self._over.set()
        self.join()


@dataclass(frozen=True)
class Moment:
    """How the run stood, so many seconds after the start of the picture."""

    at: float
    report: QosReport
    delays: Mapping[str, float | None]  # of the oldest answer of the last second, or of what still waits


def watch(running: ps.Runtime, seconds: float, say: Callable[[str], None], began: float) -> list[Moment]:
    """Look twice a second, say how it stands every two seconds."""
    moments, until = [], time.monotonic() + seconds
    while (now := time.monotonic()) < until:
        running.check()
        moments.append(Moment(now - began, running.qos(), delays(running)))
        if len(moments) % 4 == 0:
            say(line(moments[-1]))
        time.sleep(0.5)
    return moments


def delays(running: ps.Runtime) -> dict[str, float | None]:
    """The largest delay of each output in its last second."""
    newest = {name: seconds[-1] for name, seconds in running.status().seconds.items() if seconds}
    return {
        name: max((*(delay for delay, _ in second.delays), second.age or 0.0), default=None)
        for name, second in newest.items()
        if second.second > time.time() - 3
    }


def warm_up(running: ps.Runtime, driver: Driver, seconds: float) -> float:
    """At least so long, with more and more tuples, until they need about half of what there is.

    Returns how many tuples a second fit. Longer trains are needed to find that out: what a short one costs
    does not depend on its tuples.
    """
    began, rates, known = time.monotonic(), list[float](), False
    while (passed := time.monotonic() - began) < 180:
        moment = watch(running, 2.0, print, began)[-1]
        late = (moment.report.sources[0].age or 0.0) > 1
        fits = what_fits(moment.report, HEADROOM)
        known = known or fits is not None
        if fits is None or late or passed < seconds / 2:
            continue
        if driver.rate < 0.4 * fits:
            driver.rate = int(min(1.5 * driver.rate, 0.5 * fits))
        else:
            rates.append(fits)
        if passed > seconds and len(rates) > 4:
            return float(np.median(rates[-5:]))
    if not known:
        raise SystemExit("after three minutes nobody knows what a tuple costs, so nobody knows what fits")
    raise SystemExit("after three minutes it is still late, at half of what should fit: too much else runs")


def line(moment: Moment) -> str:
    """One line for the console."""
    report = moment.report
    source = report.sources[0]
    shares = ", ".join(f"{o.name} {100 * o.share:.0f} %" for o in report.outputs)
    load = "?" if report.load is None else f"{report.load:.2f}"
    return (
        f"{moment.at:5.1f} s  {source.offered_rate or 0:9,.0f}/s offered, {source.shed_rate:9,.0f}/s shed, "
        f"load {load} of {report.capacity or 0:.2f}; kept: {shares}"
    )


def what_fits(report: QosReport, headroom: float) -> float | None:
    """The rate at which the load would be what may be used, by what has been measured so far."""
    rate = report.sources[0].offered_rate
    return (
        rate * headroom * report.capacity / report.load if rate and report.load and report.capacity else None
    )


def picture(moments: Sequence[Moment], path: Path) -> None:
    """Offered and let in, delays and utilities, over time."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(8, 7), layout="constrained")
    rates, late, useful = panels = figure.subplots(3, 1, sharex=True)
    times = [each.at for each in moments]
    offered = [each.report.sources[0].offered_rate or 0.0 for each in moments]
    rates.plot(times, offered, label="offered", color="#7a7a7a", linewidth=3, alpha=0.5)
    rates.set_ylabel("tuples a second, let in for")
    colours = ("#a33b5c", "#c77d1e", "#5d8a3a")
    for colour, name in zip(colours, [o.name for o in moments[-1].report.outputs], strict=False):
        mine = [next((o for o in m.report.outputs if o.name == name), None) for m in moments]
        kept = [None if o is None else o.share * rate for o, rate in zip(mine, offered, strict=True)]
        rates.plot(times, kept, label=name, color=colour)
        late.plot(times, [m.delays.get(name) for m in moments], label=name, color=colour)
        useful.plot(times, [None if o is None else o.utility for o in mine], label=name, color=colour)
    late.set_ylabel("delay, seconds")
    useful.set_ylabel("utility")
    useful.set_xlabel("seconds")
    for axes in panels:
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper right", fontsize="small")
        axes.grid(alpha=0.3)
    figure.savefig(path)


def make_room(folder: Path) -> None:
    """Remove what an earlier run has left in a folder, and nothing else; begin a checkpoint there."""
    if folder.exists() and not folder.is_dir():
        raise SystemExit(f"{folder} is no folder")
    left = [folder / name for name in MADE if (folder / name).exists()]
    if left and not (folder / "checkpoint").exists():
        raise SystemExit(f"{left[0]} is not of this example: give another folder")
    for path in left:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    (folder / "checkpoint").mkdir(parents=True, mode=0o700)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", default="out/overload", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the picture")
    parser.add_argument("--warm-up", type=float, default=30.0, help="seconds before it")
    given = parser.parse_args()
    if not (1 <= given.seconds < math.inf and 0 <= given.warm_up < math.inf):
        parser.error("--seconds must be 1 or more, --warm-up 0 or more")
    make_room(given.folder)
    (given.folder / "in").mkdir()
    control = ps.Control(headroom=HEADROOM)
    driver = Driver(given.folder / "in")
    with ps.Runtime(
        network(given.folder), checkpoint=given.folder / "checkpoint", control=control
    ) as running:
        if not running.measures_cpu:
            raise SystemExit(
                "the CPU of trains cannot be measured here, so nobody knows what fits: try Linux"
            )
        driver.start()
        print("warming up, and finding out what fits", flush=True)
        fits = warm_up(running, driver, given.warm_up)
        print(f"about {fits:,.0f} tuples a second fit; {FACTOR:g} times that will come", flush=True)
        began, part = time.monotonic(), given.seconds / 4
        moments = []
        for rate, seconds in ((0.5 * fits, part), (FACTOR * fits, 2 * part), (0.5 * fits, part)):
            driver.rate = int(rate)
            moments += watch(running, seconds, print, began)
        driver.stop()
    picture(moments, given.folder / "overload.svg")
    print(f"see {given.folder}/overload.svg, and: penstock qos why {given.folder}/checkpoint scores")


if __name__ == "__main__":
    main()
