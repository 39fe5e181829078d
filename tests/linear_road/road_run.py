"""The network over an input, without Spark: what the tests of the network share."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from linear_road.golden_input import balance, by_time, daily, report, travel
from penstock.linear_road.drive.driver import DrivePlan, drive
from penstock.linear_road.network import answer_files, dead_letters, road_network
from penstock.linear_road.rows.inputs import Delivery
from penstock.testing.dry_run import DryRun


def delivered(source: Path, out: Path, groups: int = 1, delivery: Delivery = "text") -> Path:
    """Drive an input at maximum speed into out/in."""
    plan = DrivePlan(source, to=str(out / "in"), speed=float("inf"), lenient=True, groups=groups)
    drive(replace(plan, delivery=delivery))
    return out / "in"


def dry(out: Path, history: Path | None = None, *, length: int = 100_000, partitions: int = 2) -> DryRun:
    net = road_network(history, out / "in", out / "answers")
    return DryRun(net, out / "checkpoint", length=length, partitions=partitions)


def answers(out: Path) -> list[str]:
    return sorted(line for file in answer_files(out / "answers") for line in file.read_text().splitlines())


def refused(out: Path) -> list[tuple[str, str]]:
    return sorted((reason, raw) for reason, _, _, raw in dead_letters(out / "checkpoint"))


def odd_rows(seed: int, *, seconds: int = 420, crowd: int = 56) -> list[str]:  # noqa: C901 - by oddity
    """Traffic that keeps to no rhythm: vehicles out of step, standing, leaving by lane 4, on two expressways,
    and a crowd for tolls.
    """
    dice = random.Random(seed)
    rows: list[str] = []
    for vid in range(crowd):
        at = dice.randrange(30)
        for k, t in enumerate(range(at, seconds, 30)):
            rows.append(
                report(t, vid, 5280 * 10 + 40 * k * (1 + vid % 5), spd=dice.randrange(30), lane=1 + vid % 3)
            )
    for vid in range(100, 130):
        t, pos, lane = dice.randrange(60), dice.randrange(8, 13) * 5280, dice.choice([0, 1, 2, 4])
        xway, way = dice.choice([(0, 0), (0, 0), (0, 1), (3, 1)])
        while t < seconds:
            rows.append(report(t, vid, pos, spd=dice.randrange(101), xway=xway, lane=lane, direction=way))
            if dice.random() < 0.3:
                rows.append(balance(t, vid, len(rows)))
            if dice.random() < 0.05:
                rows += [daily(t, vid, len(rows), 3), travel(t, vid, len(rows), 3, 9, 2, 700)]
            t += dice.choice([30] * 12 + [10, 20, 45, 60, 90, 30])
            if dice.random() < 0.5:
                pos, lane = (
                    max(0, min(527_999, pos + dice.randrange(-2000, 7000))),
                    dice.choice([0, 1, 1, 2, 3, 4]),
                )
            if dice.random() < 0.02:
                xway, way = dice.choice([(0, 0), (3, 1)])
    # these stand at one place, some with a report in between or from elsewhere in the same second
    for vid in range(200, 206):
        for t in range(dice.randrange(40), dice.randrange(seconds // 2, seconds), 30):
            rows.append(report(t, vid, 12 * 5280 + 100, lane=2))
            if dice.random() < 0.06:
                rows.append(report(t, vid, 12 * 5280 + 100, xway=3, lane=2, direction=dice.randrange(2)))
            if dice.random() < 0.08:
                rows.append(report(t + 7, vid, 12 * 5280 + dice.choice([100, 900]), lane=2))
    for vid, t0 in ((210, 3), (211, 17)):  # these two do so from the beginning
        rows += [report(t, vid, 11 * 5280 + 50, lane=1) for t in range(t0, seconds - 40, 30)]
    return by_time(*rows)
