"""Running the network: a runtime with the right trains, the warm-up, and what a run leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.model.network import Network


def road_runtime(
    net: Network, checkpoint: Path, *, spark: Any = None, partitions: int = 2, once: bool = False
) -> Any:
    """A `Runtime` (not started) for `net`: trains of whole seconds, as soon as there are any.

    `once`: take what has been delivered, then end (`wait`); else until stopped. `spark`: a session, by default one is made
    with `penstock.engine.spark.session.local_session`.
    """
    raise NotImplementedError("the network is being built")


def warm_up(spark: Any, *, partitions: int = 2, trains: int = 20) -> float:
    """Run a small made-up city through the network in a scratch directory, so that the JVM has compiled what it
    will and every worker has loaded its kernels from numba's cache; returns the seconds it took.
    """
    raise NotImplementedError("the network is being built")


def dead_letters(checkpoint: Path) -> Iterator[tuple[str, str, int, str]]:
    """(reason, source, line, raw) of every refused row: `source` is the delivered file, `line` counts from 1 in it."""
    raise NotImplementedError("the network is being built")


def answer_files(answers: Path) -> Iterator[Path]:
    """The finished answer files of all outputs, in the order of trains; a file that is there never changes."""
    raise NotImplementedError("the network is being built")
