"""One collector over what the run knows, for Prometheus. No train pays for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.control.utility import mean_utility
from penstock.runtime.records.train_records import Status
from penstock.web.look.point_figures import PointFigures
from penstock.web.look.status_json import graphs_of, points_of
from penstock.web.look.watched import Watched
from penstock.web.metrics.observed import Since
from penstock.web.metrics.qos_figures import qos_figures

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_STATE_EVERY = 15.0  # seconds between two looks at the sizes of state


class NetworkCollector(Collector):
    """The metrics of one network, made when somebody asks."""

    def __init__(self, watched: Watched) -> None:
        self._watched, self._name = watched, watched.name()
        self._since = Since(watched.catalog, watched.checkpoint)
        self._points = PointFigures(watched.checkpoint)
        self._state: tuple[float, dict[str, int]] = float("-inf"), {}
        self._lock = threading.Lock()

    def collect(self) -> Iterable[Metric]:
        """All families."""
        with self._lock:
            status = self._watched.status()
            self._since.look()
            return [
                *self._boxes(status),
                *self._outputs(status),
                *self._trains(status),
                *qos_figures(self._watched, status),
                *self._stored(),
            ]

    def _boxes(self, status: Status) -> Iterator[Metric]:
        tuples = CounterMetricFamily(
            "penstock_box_tuples", "Tuples into and out of a box.", labels=["network", "box", "direction"]
        )
        for name, count in status.boxes.items():
            tuples.add_metric([self._name, name, "in"], count.rows_in)
            tuples.add_metric([self._name, name, "out"], count.rows_out)
        yield tuples
        dead = CounterMetricFamily(
            "penstock_dead_letters", "Tuples that were refused.", labels=["box", "reason"]
        )
        for (box, reason), refused in self._since.dead.items():
            dead.add_metric([box, reason], refused)
        yield dead

    def _outputs(self, status: Status) -> Iterator[Metric]:
        latency = HistogramMetricFamily(
            "penstock_output_latency_seconds",
            "Seconds from a tuple's arrival to the output.",
            labels=["network", "output"],
        )
        for name, observed in self._since.delays.items():
            latency.add_metric([self._name, name], observed.buckets(), observed.total)
        yield latency
        utility = GaugeMetricFamily(
            "penstock_output_utility_ratio",
            "Mean utility of an output in the last minute.",
            labels=["network", "output"],
        )
        for name, qos in graphs_of(self._watched).items():
            mean = mean_utility(qos, status.seconds.get(name, ()))
            if mean is not None:
                utility.add_metric([self._name, name], mean)
        yield utility

    def _trains(self, status: Status) -> Iterator[Metric]:
        shed = CounterMetricFamily(
            "penstock_shed_tuples", "Tuples that were shed.", labels=["network", "source"]
        )
        for source, account in status.accounts.items():
            shed.add_metric([self._name, source], account.shed)
        yield shed
        lag = GaugeMetricFamily(
            "penstock_source_lag_seconds", "Age of the oldest tuple that waits.", labels=["network", "source"]
        )
        for load in status.inputs:
            if load.age is not None or load.waiting == 0:
                lag.add_metric([self._name, load.input], load.age or 0.0)
        yield lag
        trains = HistogramMetricFamily(
            "penstock_train_seconds", "Seconds that trains took.", labels=["subnetwork", "phase"]
        )
        for name, observed in self._since.trains.items():
            trains.add_metric([name, "run"], observed.buckets(), observed.total)
        yield trains

    def _stored(self) -> Iterator[Metric]:
        points = GaugeMetricFamily(
            "penstock_point_bytes", "Bytes that a connection point retains.", labels=["network", "point"]
        )
        for name, figures in self._points.figures(points_of(self._watched)).items():
            points.add_metric([self._name, name], figures["bytes"])
        yield points
        state = GaugeMetricFamily(
            "penstock_state_bytes", "Bytes of state in the checkpoint.", labels=["network", "subnetwork"]
        )
        for name, size in self._state_sizes().items():
            state.add_metric([self._name, name], size)
        yield state

    def _state_sizes(self) -> dict[str, int]:
        looked, known = self._state
        if time.monotonic() - looked >= _STATE_EVERY:
            folder = self._watched.checkpoint / "queries"
            subs = [path for path in folder.iterdir() if path.is_dir()] if folder.exists() else []
            known = {path.name: _size(path / "state") for path in subs}
            self._state = time.monotonic(), known
        return known


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*") if folder.exists() else ():
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # deleted between the listing and the look
    return total


def metrics_text(collector: NetworkCollector) -> bytes:
    """The answer to a scrape."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Once(collector))
    return generate_latest(registry)


class _Once(Collector):
    """A registry asks once while it registers, and again for the text: the first time there is nothing."""

    def __init__(self, collector: NetworkCollector) -> None:
        self._collector = collector

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        return self._collector.collect()
