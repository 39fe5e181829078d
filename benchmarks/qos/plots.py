"""Pictures of the results of `benchmarks/qos`: runs over time, and curves with the axes of the papers.

    python -m benchmarks.qos.plots FOLDER RESULT.json [RESULT.json ...]

Each result adds what it holds. Of several overload runs at one load the mean is drawn.

| picture | result | x and y |
|---|---|---|
| time-xN.svg | overload | seconds; utility and delay of the strict output |
| q1.svg | curves | boxes; mean delay, one query a box and one a sub-network |
| q2.svg | curves | train length; CPU a tuple, and mean delay |
| q3.svg | overload | load; utility, by way of scheduling |
| q4.svg | overload | excess load; utility lost, by way of shedding |
| q5.svg | semantic | skew of values; value utility lost, semantic by random |
| q6.svg | curves | share kept; windows delivered and wrong, by what is dropped |
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.qos.summary import assignment_of

Q3 = ("none", "round-robin", "fifo", "state-only", "feedback-only", "state")
Q4 = ("random", "costliest", "uniform", "state", "oracle")
_COLOURS = {
    "none": "#7a7a7a", "round-robin": "#8f6bb3", "fifo": "#4f86a8", "static": "#b5651d", "random": "#c77d1e",
    "latency": "#3a8a7d", "costliest": "#2f6db5", "uniform": "#b0a11e",
    "state": "#a33b5c", "feedback": "#5d8a3a", "state-only": "#d48aa3", "feedback-only": "#a8c890",
    "oracle": "#222222",
}  # fmt: skip


def pieces_of(results: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The pieces of the base assignment; what was said to be overload and was none is left out."""
    return [
        piece
        for result in results
        if assignment_of(result) == "base"
        for piece in result["figures"]["pieces"]
        if piece.get("overloaded") is not False or piece["factor"] <= 1
    ]


def by_load(
    pieces: Iterable[Mapping[str, Any]], names: Sequence[str]
) -> dict[str, list[tuple[float, float]]]:
    """(factor, mean utility) of each contender, in rising order.

    >>> piece = {"factor": 2.0, "oracle": {"utility": 0.9}, "contenders": {"state": {"utility": 0.8}}}
    >>> by_load([piece], ["state", "oracle", "fifo"])
    {'state': [(2.0, 0.8)], 'oracle': [(2.0, 0.9)]}
    """
    utilities: dict[str, dict[float, list[float]]] = {name: defaultdict(list) for name in names}
    for piece in pieces:
        told = {**piece["contenders"], "oracle": piece["oracle"]}
        for name in names:
            if name in told:
                utilities[name][piece["factor"]].append(told[name]["utility"])
    return {
        name: [(factor, fmean(values)) for factor, values in sorted(points.items())]
        for name, points in utilities.items()
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
    _one_panel(points, path, x="load, in multiples of x1", y="utility")


def loss_curve(points: Mapping[str, Sequence[tuple[float, float]]], path: Path) -> None:
    """Q4: utility lost over the excess load."""
    lost = {
        name: [(100 * (factor - 1), 1 - utility) for factor, utility in line if factor > 1]
        for name, line in points.items()
    }
    _one_panel(lost, path, x="excess load, per cent", y="utility lost")


def boxes_curve(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Q1: mean delay over the boxes of a chain."""
    lines = _lines(rows, "way", "boxes", "mean_delay_s")
    _one_panel(lines, path, x="boxes", y="mean delay, seconds")


def length_curve(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Q2: CPU and delay over the length of trains."""
    figure, (cpu, delay) = _axes(2)
    lengths = [row["length"] for row in rows]
    cpu.plot(lengths, [row["cpu_us_a_tuple"] for row in rows], marker="o", label="CPU a tuple")
    delay.plot(lengths, [row["mean_delay_s"] for row in rows], marker="o", label="mean delay")
    cpu.set_ylabel("CPU a tuple, microseconds")
    delay.set_ylabel("mean delay, seconds")
    for axes in (cpu, delay):
        axes.set_xscale("log")
        axes.set_yscale("log")
    delay.set_xlabel("tuples of a train")
    _finish(figure, (cpu, delay), path, bottom=None)


def skew_curve(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Q5: value utility lost by value over that lost at random, by the skew of values."""
    told = [{**row, "line": f"{row['share']:g} kept"} for row in rows if row["way"] == "backward"]
    lines = _lines(told, "line", "skew", "ratio")
    _one_panel(lines, path, x="skew of the values (Zipf)", y="value utility lost, by that at random")


def drops_curve(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Q6: windows delivered, and wrong, over the share kept."""
    lines = {
        f"{way} dropped: {what}": line
        for what in ("delivered", "wrong")
        for way, line in _lines(rows, "dropped", "kept", what).items()
    }
    wrong = {name for name in lines if name.endswith("wrong")}
    _one_panel(lines, path, x="share kept", y="share of the windows", dashed=wrong)


def _one_panel(
    lines: Mapping[str, Sequence[tuple[float, float]]],
    path: Path,
    *,
    x: str,
    y: str,
    dashed: Collection[str] = (),
) -> None:
    """Lines with their points marked; those without a point are left out."""
    figure, (axes,) = _axes(1)
    for name, line in lines.items():
        if line:
            style = "--" if name in dashed else "-"
            axes.plot(*zip(*line, strict=True), style, marker="o", label=name, color=_COLOURS.get(name))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    _finish(figure, (axes,), path)


def _lines(
    rows: Iterable[Mapping[str, Any]], by: str, x: str, y: str
) -> dict[str, list[tuple[float, float]]]:
    """The points of one line for each value of a column.

    >>> _lines([{"way": "a", "n": 2, "s": 0.1}, {"way": "a", "n": 1, "s": 0.2}], "way", "n", "s")
    {'a': [(1, 0.2), (2, 0.1)]}
    """
    lines: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        lines[row[by]].append((row[x], row[y]))
    return {name: sorted(points) for name, points in lines.items()}


def _axes(count: int) -> tuple[Any, tuple[Any, ...]]:
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(7, 3.2 * count), layout="constrained")
    panels = figure.subplots(count, 1, sharex=True, squeeze=False)
    return figure, tuple(row[0] for row in panels)


def _finish(figure: Any, panels: Sequence[Any], path: Path, bottom: float | None = 0) -> None:
    for axes in panels:
        axes.set_ylim(bottom=bottom)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    print(f"written: {path}")


def main(folder: Path, files: Sequence[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, list[Any]] = defaultdict(list)
    for file in files:
        result = json.loads(file.read_text())
        results[result["benchmark"]].append(result)
    if pieces := pieces_of(results["qos-overload"]):
        for piece in pieces:
            over_time(piece, folder / f"time-x{piece['factor']:g}.svg")
        load_curve(by_load(pieces, Q3), folder / "q3.svg")
        loss_curve(by_load(pieces, Q4), folder / "q4.svg")
    for result in results["qos-semantic"]:
        skew_curve(result["figures"], folder / "q5.svg")
    curves = {"boxes": (boxes_curve, "q1"), "lengths": (length_curve, "q2"), "drops": (drops_curve, "q6")}
    for result in results["qos-curves"]:
        for part, rows in result["figures"].items():
            draw, name = curves[part]
            draw(rows, folder / f"{name}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
