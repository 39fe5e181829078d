"""SE1-SE4 as pictures: the paper's axes, our curves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.diffusion.experiments import Adaptation, Balance, Scaling

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES = {
    "higher": "SSP, master: faster stream",
    "lower": "SSP, master: slower stream (paper's sentence)",
    "literal": "SSP, master: faster stream, literal expiry",
    "static": "SSP static",
    "llf": "LLF-Distribution",
}
_COLOURS = {
    "higher": "#1b6ca8",
    "lower": "#c77d1e",
    "literal": "#a33b5c",
    "static": "#5d8a3a",
    "llf": "#7a7a7a",
}


def plot_scaling(scaling: Scaling, folder: Path) -> list[Path]:
    """Fig. 4 and Fig. 5."""
    paths = []
    for name, title, curves, flat, unit, label in (
        (
            "se1",
            "SE1 (Fig. 4): throughput",
            scaling.throughput,
            scaling.llf_throughput,
            1e6,
            "join operations, millions",
        ),
        (
            "se2",
            "SE2 (Fig. 5): effective CPU utilisation",
            scaling.utilisation,
            scaling.llf_utilisation,
            0.01,
            "mean, per cent",
        ),
    ):
        figure, axes = _axes(title, "servers per join", label)
        for rule, values in curves.items():
            axes.plot(
                scaling.servers,
                [v / unit for v in values],
                "o-",
                ms=3,
                color=_COLOURS[rule],
                label=_NAMES[rule],
            )
            best = max(range(len(values)), key=values.__getitem__)
            axes.annotate(
                f"k = {scaling.servers[best]}", (scaling.servers[best], values[best] / unit), fontsize=8
            )
        axes.axhline(flat / unit, color=_COLOURS["llf"], ls="--", label=_NAMES["llf"])
        axes.axvline(15, color="#cccccc", lw=0.8, zorder=0)
        paths.append(_save(figure, axes, folder / f"{name}.svg"))
    return paths


def plot_balance(balance: Balance, folder: Path) -> list[Path]:
    """Fig. 6."""
    figure, axes = _axes(
        "SE3 (Fig. 6): load balance, 2 joins on 10 nodes", "node", "effective CPU utilisation, per cent"
    )
    nodes = range(1, len(balance.ssp) + 1)
    axes.bar(
        [n - 0.2 for n in nodes], [u * 100 for u in balance.ssp], 0.4, color=_COLOURS["higher"], label="SSP"
    )
    axes.bar(
        [n + 0.2 for n in nodes],
        [u * 100 for u in balance.llf],
        0.4,
        color=_COLOURS["llf"],
        label=_NAMES["llf"],
    )
    return [_save(figure, axes, folder / "se3.svg")]


def plot_adaptation(adaptation: Adaptation, folder: Path) -> list[Path]:
    """Fig. 7."""
    figure, axes = _axes(
        "SE4 (Fig. 7): rates change every 500 s", "time, s", "join operations in 50 s, thousands"
    )
    for name, values in adaptation.throughput.items():
        label = _NAMES[name] if name in ("static", "llf") else _NAMES[name].replace("SSP", "SSP adaptive")
        axes.plot(adaptation.times, [v / 1e3 for v in values], lw=1.2, color=_COLOURS[name], label=label)
    return [_save(figure, axes, folder / "se4.svg")]


def _axes(title: str, x: str, y: str) -> tuple[Figure, Axes]:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Figure, axes: Axes, path: Path) -> Path:
    from matplotlib import pyplot as plt

    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=110)
    plt.close(figure)
    return path
