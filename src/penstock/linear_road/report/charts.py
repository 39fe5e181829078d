"""Plots of a run over its time: response times, rates, processor, backlog.

Idea: a plot is drawn from the `series` of a run (see `penstock.linear_road.run.runner`). These are
percentiles by second, and samples of the process tree, taken once a second. Samples hold totals, whose
differences are rates. A picture is a data URL, so that it is embedded in the page.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.linear_road.run.record import SampleFigures, Series

Samples = Sequence[SampleFigures]
Total = Literal["rows_in", "rows_out", "cpu_s"]
_SIZE = (9.6, 2.6)


def picture(figure: Figure) -> str:
    """A figure as a data URL."""
    text = io.BytesIO()
    # No date, no random names: the same figures must give the same page.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "penstock", "font.size": 8}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(text.getvalue()).decode("ascii")


def response_times(series: Series) -> Figure | None:
    """Response times over time; None for a run without a clock."""
    seconds = series.get("second")
    if not seconds:
        return None
    figure, axes = _axes("response time, all types", "seconds", over="minute of the data")
    minutes = [t / 60 for t in seconds]
    for name, times, colour in (("p50", series["p50"], "tab:blue"), ("p99", series["p99"], "tab:red")):
        axes.plot(minutes, [_number(seconds) for seconds in times], label=name, color=colour, lw=1)
    axes.axhline(5, color="gray", ls="--", lw=0.8, label="limit of tolls, alerts, balances")
    axes.set_ylim(0, None)
    _legend(axes)
    return figure


def rates(samples: Samples) -> Figure | None:
    """Tuples in and answers out by second."""
    if len(samples) < 2:
        return None
    figure, axes = _axes("rate", "per second")
    axes.plot(_minutes(samples), slopes(samples, "rows_in"), label="tuples in", lw=1)
    axes.plot(_minutes(samples), slopes(samples, "rows_out"), label="answers out", lw=1)
    axes.set_ylim(0, None)
    _legend(axes)
    return figure


def processor(samples: Samples) -> Figure | None:
    """Cores used, with memory beside it."""
    if len(samples) < 2:
        return None
    figure, axes = _axes("processor and memory, all processes", "cores")
    # Draw each line in the colour of its axis.
    axes.plot(_minutes(samples), slopes(samples, "cpu_s"), color="tab:green", lw=1)
    axes.set_ylim(0, None)
    axes.yaxis.label.set_color("tab:green")
    beside = axes.twinx()
    beside.plot(_minutes(samples), [s["memory_mb"] / 1000 for s in samples[1:]], color="tab:purple", lw=1)
    beside.set(ylabel="GB of memory", ylim=(0, None))
    beside.yaxis.label.set_color("tab:purple")
    return figure


def backlog(samples: Samples) -> Figure | None:
    """Seconds of input not yet answered."""
    if len(samples) < 2:
        return None
    figure, axes = _axes("backlog", "seconds of input")
    axes.plot(_minutes(samples), [s["backlog_s"] for s in samples[1:]], color="tab:brown", lw=1)
    axes.set_ylim(0, None)
    return figure


def slopes(samples: Samples, name: Total) -> list[float]:
    """By how much a total grew per second, between consecutive samples.

    >>> slopes([{"wall": 0, "rows_in": 0}, {"wall": 2, "rows_in": 10}, {"wall": 3, "rows_in": 30}], "rows_in")
    [5.0, 20.0]
    """
    return [(b[name] - a[name]) / max(b["wall"] - a["wall"], 1e-9) for a, b in pairwise(samples)]


def _minutes(samples: Samples) -> list[float]:
    # A slope belongs to the later of its two samples, so the first sample has no point.
    return [sample["wall"] / 60 for sample in samples[1:]]


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _legend(axes: Axes) -> None:
    """A legend beside the title: inside the plot it would cover lines."""
    axes.legend(
        loc="lower right", bbox_to_anchor=(1, 1), ncols=3, fontsize=7, frameon=False, borderaxespad=0.2
    )


def _axes(title: str, label: str, over: str = "minute of the run") -> tuple[Figure, Axes]:
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=over, ylabel=label)
    axes.set_title(title, loc="left")
    axes.grid(alpha=0.3)
    return figure, axes
