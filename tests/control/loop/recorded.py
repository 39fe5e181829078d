"""Trains of real runs of `examples/overload.py`: what control must not take for overload."""

from __future__ import annotations

from penstock.store.catalog.record_types import BoxCount, TrainRecord

START_UP = (
    (0.0, 9.93, 0, 3.61, 0.004, 0.0),
    (9.93, 5.21, 10000, 3.16, 0.006, 0.057),
    (15.45, 0.62, 20000, 0.61, 0.008, 0.106),
    (16.08, 0.23, 1535, 0.17, 0.007, 0.015),
    (16.3, 0.27, 1535, 0.2, 0.007, 0.017),
    (16.58, 36.78, 28444, 15.95, 0.007, 0.147),
    (53.86, 7.61, 27404, 3.51, 0.011, 0.156),
    (61.5, 2.27, 4560, 0.83, 0.01, 0.036),
    (63.78, 1.80, 3530, 0.63, 0.01, 0.03),
    (66.09, 1.02, 2880, 0.43, 0.008, 0.026),
    (67.12, 0.53, 1705, 0.19, 0.005, 0.014),
    (67.65, 1.01, 2121, 0.37, 0.005, 0.021),
    (68.66, 1.48, 2390, 0.49, 0.009, 0.022),
    (70.17, 0.84, 2121, 0.33, 0.006, 0.02),
    (71.02, 0.56, 1755, 0.2, 0.006, 0.013),
    (71.61, 0.58, 1976, 0.18, 0.005, 0.015),
    (72.23, 1.04, 2048, 0.37, 0.006, 0.02),
    (73.27, 1.05, 2121, 0.31, 0.005, 0.019),
)
"""Begin, seconds, tuples, CPU-seconds, those of `minutes` and of `score`: the first trains of a run, on a
machine on which ten other programs wanted to run. 4,000 tuples a second came."""


def records(trains, subnetwork="alarms", at=0.0):
    """As the catalog keeps them, under the names of the network in `networks.py`."""
    return [
        TrainRecord(
            subnetwork,
            number,
            at + begin,
            at + begin + seconds,
            tuples,
            (
                BoxCount("fast", tuples, tuples // 50),
                BoxCount("minutes", tuples, 10, wall=0.1, cpu=minutes),
                BoxCount("score", tuples, tuples, wall=0.1, cpu=score),
            ),
            cpu=cpu,
        )
        for number, (begin, seconds, tuples, cpu, minutes, score) in enumerate(trains)
    ]
