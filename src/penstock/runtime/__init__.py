"""Running a network: its sub-networks as queries, how to change and steer them, and what is recorded."""

from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.spark.session import local_session
from penstock.runtime.runtime import Runtime

__all__ = ["AsSoonAsPossible", "Runtime", "TrainDone", "local_session"]
