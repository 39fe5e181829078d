"""Pictures of overload results: one run over time, and the follow-up papers' axes (Q3, Q4).

    python -m benchmarks.qos.plots FOLDER RESULT.json [RESULT.json ...]

`time-xN.svg`: utility of each contender over the seconds, and the delay of the strict output. `q3.svg`:
utility over the load, by scheme. `q4.svg`: utility lost over the excess load in per cent, by way of shedding.
Q3 and Q4 take all pieces of all results that are given; of several runs at one load the mean is drawn.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

Q3 = ("none", "round-robin", "fifo", "state", "feedback")
Q4 = ("static", "random", "latency", "state", "oracle")
_COLOURS = {
    "none": "#7a7a7a", "round-robin": "#8f6bb3", "fifo": "#4f86a8", "static": "#b5651d", "random": "#c77d1e",
    "latency": "#3a8a7d", "state": "#a33b5c", "feedback": "#5d8a3a", "oracle": "#222222",
}  # fmt: skip


def pieces_of(results: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [piece for result in results for piece in result["figures"]["pieces"]]


def by_load(
    pieces: Iterable[Mapping[str, Any]], names: Sequence[str]
) -> dict[str, list[tuple[float, float]]]:
    """(factor, mean utility) of each contender, in rising order.

    >>> piece = {"factor": 2.0, "oracle": {"utility": 0.9}, "contenders": {"state": {"utility": 0.8}}}
    >>> by_load([piece], ["state", "oracle", "fifo"])
    {'state': [(2.0, 0.8)], 'oracle': [(2.0, 0.9)]}
    """
    found: dict[str, dict[float, list[float]]] = {name: defaultdict(list) for name in names}
    for piece in pieces:
        told = {**piece["contenders"], "oracle": piece["oracle"]}
        for name in names:
            if name in told:
                found[name][piece["factor"]].append(told[name]["utility"])
    return {
        name: [(factor, fmean(values)) for factor, values in sorted(points.items())]
        for name, points in found.items()
        if points
    }


def over_time(piece: Mapping[str, Any], path: Path, strict: str = "alarms") -> None:
    """Utility of all outputs by weight over the seconds, and the delay of the strict output."""
    figure, (useful, late) = _axes(2)
    for name, result in piece["contenders"].items():
        alarms = result["seconds"][strict]
        colour = _COLOURS.get(name)
        useful.plot([s[0] for s in alarms], [s[2] for s in alarms], label=name, color=colour)
        late.plot([s[0] for s in alarms], [s[3] for s in alarms], label=name, color=colour)
    useful.set_ylabel(f"utility of {strict}")
    late.set_ylabel(f"delay of {strict}, seconds")
    late.set_yscale("symlog", linthresh=1)
    late.set_xlabel("seconds")
    _finish(figure, (useful, late), path)


def load_curve(points: Mapping[str, Sequence[tuple[float, float]]], path: Path) -> None:
    """Q3: utility over the load."""
    figure, (axes,) = _axes(1)
    for name, line in points.items():
        axes.plot(*zip(*line, strict=True), marker="o", label=name, color=_COLOURS.get(name))
    axes.set_xlabel("load, in multiples of x1")
    axes.set_ylabel("utility")
    _finish(figure, (axes,), path)


def loss_curve(points: Mapping[str, Sequence[tuple[float, float]]], path: Path) -> None:
    """Q4: utility lost over the excess load."""
    figure, (axes,) = _axes(1)
    for name, line in points.items():
        excess = [(100 * (factor - 1), 1 - utility) for factor, utility in line if factor > 1]
        if excess:
            axes.plot(*zip(*excess, strict=True), marker="o", label=name, color=_COLOURS.get(name))
    axes.set_xlabel("excess load, per cent")
    axes.set_ylabel("utility lost")
    _finish(figure, (axes,), path)


def _axes(count: int) -> tuple[Any, tuple[Any, ...]]:
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(7, 3.2 * count), layout="constrained")
    panels = figure.subplots(count, 1, sharex=True, squeeze=False)
    return figure, tuple(row[0] for row in panels)


def _finish(figure: Any, panels: Sequence[Any], path: Path) -> None:
    for axes in panels:
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    print(f"written: {path}")


def main(folder: Path, files: Sequence[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pieces = pieces_of(json.loads(file.read_text()) for file in files)
    for piece in pieces:
        over_time(piece, folder / f"time-x{piece['factor']:g}.svg")
    load_curve(by_load(pieces, Q3), folder / "q3.svg")
    loss_curve(by_load(pieces, Q4), folder / "q4.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
