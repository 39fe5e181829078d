"""All four experiments into a folder: pictures, the table of claims, every figure as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Generic, TypeVar

from penstock.diffusion.claims import Claim, adaptation_claims, as_markdown, balance_claims, scaling_claims
from penstock.diffusion.experiments import (
    Adaptation,
    Balance,
    ReportProgress,
    Scaling,
    Setup,
    adaptation,
    balance,
    scaling,
)
from penstock.diffusion.plots import plot_adaptation, plot_balance, plot_scaling
from penstock.model.errors import PenstockError, did_you_mean
from penstock.store.durable import write_text

EXPERIMENTS = ("SE1", "SE2", "SE3", "SE4")
FigureT = TypeVar("FigureT", Scaling, Balance, Adaptation)


@dataclass(frozen=True)
class _Step(Generic[FigureT]):
    """One run that serves some experiments: how to measure, what to claim, what to draw."""

    names: tuple[str, ...]
    measure: Callable[[Setup, ReportProgress], FigureT]
    judge: Callable[[FigureT], list[Claim]]
    plot: Callable[[FigureT, Path], object]

    def run(
        self, setup: Setup, folder: Path, progress: ReportProgress
    ) -> tuple[dict[str, object], list[Claim]]:
        """The figures and the claims; the pictures go to the folder."""
        begin = time.perf_counter()
        figure = self.measure(setup, progress)
        figures = asdict(figure) | {"took_seconds": round(time.perf_counter() - begin, 2)}
        self.plot(figure, folder)
        return figures, self.judge(figure)


_STEPS = (
    _Step(("SE1", "SE2"), scaling, scaling_claims, plot_scaling),
    _Step(("SE3",), balance, balance_claims, plot_balance),
    _Step(("SE4",), adaptation, adaptation_claims, plot_adaptation),
)


def chosen(names: str) -> tuple[str, ...]:
    """'SE1,SE4' -> ('SE1', 'SE4'); unknown names are refused.

    >>> chosen("se4, SE1")
    ('SE4', 'SE1')
    """
    experiments = tuple(name.strip().upper() for name in names.split(",") if name.strip())
    for name in experiments:
        if name not in EXPERIMENTS:
            raise PenstockError(
                f"no experiment '{name}'",
                expected=f"some of {', '.join(EXPERIMENTS)}",
                hint=did_you_mean(name, EXPERIMENTS),
            )
    return experiments


def report(
    setup: Setup,
    folder: Path,
    only: tuple[str, ...] = EXPERIMENTS,
    progress: ReportProgress = lambda *_: None,
) -> list[Claim]:
    """Run what is asked for and write `se1.svg` ... `se4.svg` (and .png), `table.md`, `figures.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    claims: list[Claim] = []
    figures: dict[str, object] = {"setup": asdict(setup)}
    for step in _STEPS:
        if set(step.names) & set(only):
            figures[step.names[0]], judged = step.run(setup, folder, progress)
            # A step may serve two experiments of which only one was asked for.
            claims += [claim for claim in judged if claim.id in only]
    figures["claims"] = [asdict(claim) for claim in claims]
    write_text(folder / "table.md", as_markdown(claims))
    write_text(folder / "figures.json", json.dumps(figures, indent=1))
    return claims
