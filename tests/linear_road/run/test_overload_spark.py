"""`lr run --qos` on Spark: expressways are left out and named, and the others get right answers in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.engine.contract.train_done import TrainDone
from penstock.engine.contract.valve import Valve, group_stays
from penstock.linear_road.run import runner as running
from penstock.linear_road.run.plan import RunPlan
from penstock.linear_road.traffic.generate import generate
from penstock.linear_road.validate import validate
from penstock.runtime import Runtime
from penstock.store.catalog.catalog import Catalog

XWAYS, MINUTES, SPEED, SHARE = 6, 9, 6.0, 0.5
OUT_FROM, BACK_AT = 40, 70


class Closing:
    """Stands in for control: leaves groups out for some seconds, whatever the load is."""

    def begin(self, runtime: Runtime) -> None:
        self._runtime = runtime
        runtime.on_train(self._train_done)

    def end(self) -> None:
        pass

    def _train_done(self, done: TrainDone) -> None:
        second = done.commit.newest.get("rows", 0) // 10**6
        closed = OUT_FROM <= second < BACK_AT
        valves = (Valve("rows", SHARE, "keys"),) if closed else ()
        self._runtime.set_valves(done.subnetwork, valves)


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("city") / "rows"
    generate(path, xways=XWAYS, minutes=MINUTES, seed=1)
    return path


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_expressways_are_left_out_come_back_and_are_named(
    tmp_path: Path, city: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "control_of", lambda _net, _headroom: Closing())
    plan = RunPlan(city, tmp_path / "out", speed=SPEED, qos=True)
    record = running.run(plan, session=spark)
    assert record["finished"]
    assert record["config"]["groups"] == XWAYS
    gone = {xway for xway in range(XWAYS) if not group_stays(SHARE, xway)}
    assert 0 < len(gone) < XWAYS
    out = record["left_out"]
    assert {xway for each in out for xway in each["xways"]} == gone
    assert all(OUT_FROM <= each["begin"] < each["until"] <= BACK_AT + 30 for each in out)
    catalog = Catalog(tmp_path / "out" / "_checkpoint" / "catalog.db")
    account = catalog.accounts()["rows"]
    catalog.close()
    assert account.shed > 0
    assert account.offered == account.let_in + account.dead + account.late + account.shed
    assert account.offered == record["input"]["rows"], "every tuple that was driven"
    verdict = validate(city, answers=tmp_path / "out", response_times=False)
    assert verdict.passed, [result.kinds for result in verdict.results]
    assert verdict.left_out == len(gone)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_control_leaves_nothing_out_while_all_fits(tmp_path: Path, city: Path, spark: Any) -> None:
    record = running.run(RunPlan(city, tmp_path / "out", speed=SPEED, qos=True), session=spark)
    assert record["finished"]
    assert record["left_out"] == []
    assert validate(city, answers=tmp_path / "out", response_times=False).passed
