"""A Spark session for benchmarks, and a folder that is gone afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.common.facts import ROOT


def session(settings: Mapping[str, str] | None = None, *, nice: int = 0) -> Any:
    """A Spark session with the engine's own settings, on two cores."""
    from penstock.engine.spark.session import local_session

    # Workers import the functions of a benchmark by name.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    chosen: dict[str, Any] = {"spark.log.level": "ERROR", **(settings or {})}
    return local_session("local[2]", "penstock-bench", nice=nice, **chosen)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
