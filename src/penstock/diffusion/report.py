"""All four experiments into a folder: pictures, the table of claims, every figure as JSON."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from penstock.diffusion.claims import Claim, adaptation_claims, as_markdown, balance_claims, scaling_claims
from penstock.diffusion.experiments import ReportProgress, Setup, adaptation, balance, scaling
from penstock.diffusion.plots import plot_adaptation, plot_balance, plot_scaling
from penstock.model.errors import PenstockError, did_you_mean

EXPERIMENTS = ("SE1", "SE2", "SE3", "SE4")
_STEPS = (
    (("SE1", "SE2"), scaling, scaling_claims, plot_scaling),
    (("SE3",), balance, balance_claims, plot_balance),
    (("SE4",), adaptation, adaptation_claims, plot_adaptation),
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
    figures: dict[str, Any] = {"setup": asdict(setup)}
    for names, run, judge, plot in _STEPS:
        if not set(names) & set(only):
            continue
        begin = time.perf_counter()
        figure: Any = run(setup, progress)
        figures[names[0]] = asdict(figure) | {"took_seconds": round(time.perf_counter() - begin, 2)}
        claims += [claim for claim in judge(figure) if claim.id in only]
        plot(figure, folder)
    figures["claims"] = [asdict(claim) for claim in claims]
    (folder / "table.md").write_text(as_markdown(claims))
    (folder / "figures.json").write_text(json.dumps(figures, indent=1))
    return claims
