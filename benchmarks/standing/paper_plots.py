"""The plots of the paper's experiments, in docs/img/standing."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.common.facts import ROOT

IMAGES = ROOT / "docs" / "img" / "standing"


def plot(name: str, title: str, experiment: dict[str, Any]) -> None:
    """One picture: curves over the x of the experiment, or bars if it has none."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    IMAGES.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(6, 4))
    if experiment["x"]:
        _draw_curves(axes, experiment)
    else:
        _draw_bars(axes, experiment["rows"])
    y_label = experiment["y_label"] if experiment["x"] else "MB"
    axes.set(title=f"{name}: {title}", xlabel=experiment["x_label"], ylabel=y_label)
    figure.tight_layout()
    figure.savefig(IMAGES / f"{name.lower()}.svg")
    plt.close(figure)


def _draw_curves(axes: Any, experiment: dict[str, Any]) -> None:
    x, rows = experiment["x"], experiment["rows"]
    if x != "window":
        # Rows of two windows: only the larger one is drawn.
        rows = [row for row in rows if row.get("window") == rows[-1].get("window")]
    for series in (key for key in rows[0] if key not in (x, "rows", "window")):
        axes.plot([row[x] for row in rows], [row[series] for row in rows], marker="o", label=series)
    axes.set_yscale("log")
    if experiment["log_x"]:
        axes.set_xscale("log")
    axes.legend(fontsize=8)


def _draw_bars(axes: Any, rows: list[dict[str, Any]]) -> None:
    labels = [f"{row['mode']}\n{row['selectivity']}" for row in rows]
    bottom = np.zeros(len(rows))
    for part in ("data", "results", "queries"):
        megabytes = np.array([row[part] / 1e6 for row in rows])
        axes.bar(labels, megabytes, bottom=bottom, label=part)
        bottom += megabytes
    axes.legend()
