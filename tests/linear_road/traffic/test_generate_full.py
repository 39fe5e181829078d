"""Three hours of one expressway against the measured sizes of the official data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.linear_road.describe.describe import Description, describe
from penstock.linear_road.traffic.generate import generate

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[1, 2])
def described(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Description:
    out: Path = tmp_path_factory.mktemp("lr") / "full"
    generate(out, xways=1, seed=request.param, form="parquet", jobs=2)
    return describe(out)


def test_sizes(described: Description) -> None:
    assert described.counts[0] == pytest.approx(12_000_000, rel=0.1)
    assert described.vehicles == pytest.approx(150_000, rel=0.1)
    assert 1_000_000 < sum(described.minutes.notices) < 4_000_000
    assert 14_000 < sum(described.minutes.alerts) < 56_000
    assert sum(described.minutes.tolled) > 0.3 * sum(described.minutes.notices)
    assert not described.dirt


def test_rate_follows_the_measured_points(described: Description) -> None:
    for t, rate in {0: 10, 60: 31, 120: 50, 300: 99, 450: 146}.items():
        assert described.rate[t : t + 10].mean() == pytest.approx(rate, rel=0.25)
    assert described.rate.mean() == pytest.approx(1111, rel=0.25)
    assert described.rate[-60:].mean() == pytest.approx(1700, rel=0.25)


def test_one_accident_in_each_20_minutes(described: Description) -> None:
    assert [a.detected // 1200 for a in described.accidents] == list(range(9))
    assert all(600 <= a.cleared - a.detected <= 1200 for a in described.accidents)


def test_ramps(described: Description) -> None:
    assert described.entrances.std() < 0.15 * described.entrances.mean()
    middle = np.average(np.arange(100), weights=described.exits)
    assert middle == pytest.approx(49.5, abs=1.5)
