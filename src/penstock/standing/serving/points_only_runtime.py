"""Standing queries beside a network that another process runs with `penstock run`.

Any process can read connection points, so nothing of the network runs here. Queries can name only the points,
because a source has no table that others could read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from penstock.model.errors import PenstockError
from penstock.model.text.yaml_form import from_yaml
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import split
from penstock.runtime import Runtime
from penstock.runtime.point_maintenance import PointMaintenance
from penstock.runtime.records.train_records import TrainRecords
from penstock.standing.serving.freshness import Sign
from penstock.store.catalog.catalog import Catalog
from penstock.store.durable import make_directory
from penstock.store.ownership import sign_of_life

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HINT = "name the network: penstock standing serve NET"


class PointsOnlyRuntime(Runtime):
    """A runtime that runs no part of its network.

    It keeps its records apart from those of the process that does.
    """

    def __init__(
        self,
        network: Network,
        spark: SparkSession | None = None,
        checkpoint: str | Path = "checkpoint",
        **more: Any,
    ) -> None:
        super().__init__(network, spark, checkpoint, **more)
        self.subs = ()

    def start(self) -> Self:
        """Start a session; sub-networks are attached later."""
        self._take_session()
        records_dir = self.checkpoint / "standing"
        make_directory(records_dir)
        self.records = TrainRecords(records_dir, self.network, split(self.network), self.session)
        self._maintenance = PointMaintenance(self).start()
        return self


def sign_elsewhere(checkpoint: Path) -> Sign:
    """The sign of the process that runs the network. One that has ended cleanly does not grow old."""
    sign = sign_of_life(checkpoint)
    return Sign(sign, ended=sign is None or sign.ended)


def recorded_network(checkpoint: Path) -> Network:
    """The network that a checkpoint's catalog describes."""
    if not (checkpoint / "catalog.db").exists():
        raise PenstockError(f"{checkpoint} is no checkpoint of a network that has run", hint=_HINT)
    catalog = Catalog(checkpoint / "catalog.db")
    try:
        versions = catalog.networks()
    finally:
        catalog.close()
    latest = versions[-1] if versions else None
    if latest is None or latest.form != "yaml":
        problem = f"{checkpoint}: its network has no text form (Python functions or iterables in it)"
        raise PenstockError(problem, hint=_HINT)
    return from_yaml(latest.text)
