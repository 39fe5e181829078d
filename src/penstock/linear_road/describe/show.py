"""Shows a description: tables for the terminal, pictures (PNG) and JSON."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from penstock.linear_road.describe.describe import Description
from penstock.linear_road.rows.arrays import Floats, Int64s
from penstock.linear_road.rows.fields import FEET_PER_SEGMENT, SEGMENTS, TYPES
from penstock.store.durable import whole_file, write_text

_NAMES = {0: "position reports", 2: "balance requests", 3: "daily requests", 4: "travel requests"}
_DPI = 80


class Figures(TypedDict):
    """All figures of an input, as `--json` writes them."""

    input: str
    counts: dict[str, int]
    requests_share: float
    seconds: int
    rate_at: dict[str, float]
    rate_mean: float
    rate_end: float
    vehicles: int
    trips: int
    second_trips: int
    second_trips_on_another_expressway: int
    trips_not_from_ramp: int
    reports_by_lane: list[int]
    speed_histogram: list[int]
    entrances_by_segment: list[int]
    exits_by_segment: list[int]
    cars_per_segment_minute: list[int]
    mean_speed_by_minute: list[float | None]
    toll_notices: int
    toll_notices_above_0: int
    mean_toll: float
    accident_alerts: int
    accidents: list[dict[str, object]]
    dirt: dict[str, int]
    first_dirt: list[dict[str, object]]


def figures(description: Description) -> Figures:
    """All figures as plain values, as `--json` writes them."""
    d, minutes = description, description.minutes
    notices, reports = sum(minutes.notices), d.counts[0]
    requests = sum(d.counts[kind] for kind in TYPES[1:])
    return {
        "input": d.name,
        "counts": {str(kind): count for kind, count in d.counts.items()},
        "requests_share": requests / reports if reports else 0.0,
        "seconds": len(d.rate),
        "rate_at": {str(t): float(d.rate[t : t + 10].mean()) for t in _moments(len(d.rate))},
        "rate_mean": float(d.rate.mean()) if len(d.rate) else 0.0,
        "rate_end": float(d.rate[-60:].mean()) if len(d.rate) else 0.0,
        "vehicles": d.vehicles,
        "trips": d.trips,
        "second_trips": d.second_trips,
        "second_trips_on_another_expressway": d.second_trips_elsewhere,
        "trips_not_from_ramp": d.trips_not_from_ramp,
        "reports_by_lane": d.lanes.tolist(),
        "speed_histogram": d.speeds.tolist(),
        "entrances_by_segment": d.entrances.tolist(),
        "exits_by_segment": d.exits.tolist(),
        "cars_per_segment_minute": np.trim_zeros(minutes.cars, "b").tolist(),
        "mean_speed_by_minute": [None if np.isnan(v) else round(v, 2) for v in minutes.mean_speed],
        "toll_notices": notices,
        "toll_notices_above_0": sum(minutes.tolled),
        "mean_toll": sum(minutes.toll_sum) / notices if notices else 0.0,
        "accident_alerts": sum(minutes.alerts),
        "accidents": [vars(accident) for accident in d.accidents],
        "dirt": d.dirt,
        "first_dirt": [vars(row) for row in d.first_dirt],
    }


def write_json(description: Description, file: Path) -> None:
    """Write all figures."""
    write_text(file, json.dumps(figures(description), indent=2) + "\n")


def tables(description: Description) -> Iterator[Table]:
    """What the terminal shows: counts, rate and speed over time, speeds, density, accidents, refused rows."""
    yield _counts(description)
    if len(description.rate):
        yield _over_time(description)
        yield _histogram("Speed on lanes 1..3 (mph)", description.speeds, 10)
        yield _histogram("Cars per segment and minute", description.minutes.cars, 50)
    if description.accidents:
        yield _accidents(description)
    if description.dirt:
        yield _dirt(description)


def _counts(d: Description) -> Table:
    table = Table("what", "count", title=d.name)
    f = figures(d)
    rows = [(_NAMES[kind], d.counts[kind]) for kind in TYPES]
    rows += [("vehicles", d.vehicles), ("trips", d.trips), ("second trips", d.second_trips)]
    rows += [("... on another expressway", d.second_trips_elsewhere)]
    rows += [("trips that do not start on the ramp", d.trips_not_from_ramp)]
    rows += [("toll notices", f["toll_notices"]), ("... above 0", f["toll_notices_above_0"])]
    rows += [("accident alerts", f["accident_alerts"]), ("accidents", len(d.accidents))]
    rows += [("rows that break the format", sum(d.dirt.values()))]
    for name, count in rows:
        table.add_row(name, f"{count:,}")
    means = [("requests share", f["requests_share"]), ("rate mean", f["rate_mean"])]
    means += [("rate end", f["rate_end"]), ("mean toll", f["mean_toll"])]
    for name, value in means:
        table.add_row(name, f"{value:,.3f}")
    return table


def _moments(seconds: int) -> list[int]:
    wanted = (0, 60, 120, 300, 450, 900, 1800, 3600, 5400, 7200, 9000, 10_770)
    return [t for t in wanted if t < seconds]


def _over_time(d: Description) -> Table:
    table = Table("t", "reports/s", "mean speed", "notices/min", "above 0", "alerts", title="Over time")
    m = d.minutes
    for t in _moments(len(d.rate)):
        i = t // 60
        rate = d.rate[t : t + 10].mean()
        cells = (t, f"{rate:,.1f}", f"{m.mean_speed[i]:.1f}", m.notices[i], m.tolled[i], m.alerts[i])
        table.add_row(*map(str, cells))
    return table


def _histogram(title: str, counts: Int64s, width: int) -> Table:
    table = Table("from", "count", "", title=title)
    binned = np.add.reduceat(counts, np.arange(0, len(counts), width))
    most = max(int(binned.max()), 1)
    for i in np.flatnonzero(binned).tolist():
        table.add_row(str(i * width), f"{binned[i]:,}", "#" * round(40 * int(binned[i]) / most))
    return table


def _accidents(d: Description) -> Table:
    table = Table(
        "xway", "dir", "lane", "seg", "pos", "vehicles", "detected", "cleared", title="Accidents (first 50)"
    )
    for a in d.accidents[:50]:
        who = " ".join(map(str, a.vehicles[:4]))
        table.add_row(
            *map(str, (a.xway, a.dir, a.lane, a.pos // FEET_PER_SEGMENT, a.pos, who, a.detected, a.cleared))
        )
    return table


def _dirt(d: Description) -> Table:
    total = sum(d.dirt.values())
    table = Table("file", "line", "why", "row", title=f"Rows that break the format: {total:,} (first ten)")
    for row in d.first_dirt:
        # Show data as it is: square brackets must not be read as markup.
        table.add_row(row.file, str(row.line), row.why, row.raw[:80].replace("[", r"\["))
    return table


def plot_directory(path: Path) -> Path:
    """The default folder for pictures: a writable generated directory, else a folder in the current one.

    Never beside a foreign file, because its directory belongs to somebody else. The mode bits decide, not
    `os.access`, which lets root write what is marked read-only.
    """
    ours = path.is_dir() and path.stat().st_mode & stat.S_IWUSR and os.access(path, os.W_OK)
    return path / "plots" if ours else Path.cwd() / f"{path.stem}-plots"


def draw(description: Description, directory: Path) -> list[Path]:
    """Draw rate, speed by segment and minute, and tolls as PNG files; returns their paths."""
    if not len(description.rate):
        return []
    directory.mkdir(parents=True, exist_ok=True)
    pictures = {
        "rate": _draw_rate,
        "speed": _draw_speed,
        "tolls": _draw_tolls,
        "histograms": _draw_histograms,
    }
    return [_save(picture(description), directory / f"{name}.png") for name, picture in pictures.items()]


def _save(figure: Figure, final: Path) -> Path:
    with whole_file(final) as path:
        figure.savefig(path, format="png", dpi=_DPI)
    return final


def _figure(title: str, columns: int = 1) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(5.0 * columns if columns > 1 else 7.0, 3.6), layout="constrained")
    figure.suptitle(title)
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def _draw_rate(d: Description) -> Figure:
    figure, (axes,) = _figure(f"{d.name}: position reports per second")
    # Long runs are drawn as means of ten seconds: single seconds would be a thick band.
    step = 10 if len(d.rate) > 600 else 1
    whole = d.rate[: len(d.rate) // step * step].reshape(-1, step).mean(axis=1)
    axes.plot(np.arange(len(whole)) * step / 60, whole)
    axes.set(xlabel="minute", ylabel="reports/s", ylim=(0, None))
    axes.grid(alpha=0.3)
    return figure


@dataclass(frozen=True)
class _Scale:
    """The colours of a heat map, its least and largest value, and what they mean."""

    label: str
    colours: str
    least: float = 0
    largest: float | None = None


def _heat(figure: Figure, axes: Sequence[Axes], values: list[Floats], scale: _Scale) -> None:
    by_minute = np.stack(values)
    for way, (axis, name) in enumerate(zip(axes, ("east", "west"), strict=True)):
        picture = axis.pcolormesh(
            np.arange(len(by_minute) + 1),
            np.arange(SEGMENTS + 1),
            by_minute[:, way].T,
            # A heat map of three hours as vectors would be 36,000 shapes.
            rasterized=True,
            cmap=mpl.colormaps[scale.colours],
            vmin=scale.least,
            vmax=scale.largest,
        )
        axis.set(xlabel="minute", ylabel="segment", title=name)
        figure.colorbar(picture, ax=axis, label=scale.label)


def _draw_speed(d: Description) -> Figure:
    figure, axes = _figure(f"{d.name}: mean speed by segment and minute", 2)
    _heat(figure, axes, d.minutes.speed_map, _Scale("mph", "RdYlGn", largest=70))
    return figure


def _draw_tolls(d: Description) -> Figure:
    figure, axes = _figure(f"{d.name}: tolls quoted", 3)
    _heat(figure, axes[:2], d.minutes.toll_map, _Scale("mean toll", "viridis"))
    share = 100 * np.array(d.minutes.tolled) / np.maximum(d.minutes.notices, 1)
    axes[2].plot(share, label="notices above 0 (%)")
    axes[2].plot(100 * np.array(d.minutes.alerts) / np.maximum(d.minutes.notices, 1), label="with alert (%)")
    axes[2].set(xlabel="minute", ylim=(0, 100))
    axes[2].legend()
    return figure


def _draw_histograms(d: Description) -> Figure:
    figure, axes = _figure(f"{d.name}: speeds, density, ramps", 3)
    axes[0].bar(np.arange(101), d.speeds, width=1)
    axes[0].set(xlabel="mph on lanes 1..3", ylabel="reports")
    cars = np.trim_zeros(d.minutes.cars, "b")
    axes[1].bar(np.arange(len(cars)), cars, width=1)
    axes[1].set(xlabel="cars per segment and minute", ylabel="segment minutes")
    axes[2].step(np.arange(100), d.entrances, label="entrances")
    axes[2].step(np.arange(100), d.exits, label="exits")
    axes[2].set(xlabel="segment", ylabel="trips", ylim=(0, None))
    axes[2].legend()
    return figure
