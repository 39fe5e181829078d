"""The load diffusion proxy on Spark (S06-S08): every tuple gets its owner and the servers it goes to, before
the shuffle.

A server is a partition of the join's stage. All of it is a function of the ticket's roles and of the tuple
itself, so a task that is run again, or a train that is replayed, sends each tuple where it went before.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.engine.arrow.boxes.diffused_join import OWNER
from penstock.model.diffused.roles import HASH, Roles

SERVER = "_p"


def routed(frame: DataFrame, side: int, keys: list[Any], roles: Roles) -> DataFrame:
    """The tuples of one side with `_owner` and `_p`, the server; those for all servers once for each."""
    placed = frame.withColumn(OWNER, _owner(frame, keys, roles).cast("int"))
    if not roles.everywhere(side):
        return placed.withColumn(SERVER, F.col(OWNER))
    return placed.withColumn(SERVER, F.explode(F.sequence(F.lit(0), F.lit(roles.servers - 1))))


def _owner(frame: DataFrame, keys: list[Any], roles: Roles) -> Column:
    if roles.scheme == HASH:
        return F.pmod(F.xxhash64(*keys), F.lit(roles.servers))
    # of the whole tuple: behind a window or a join `_seq` alone says too little
    turn = F.pmod(F.xxhash64(*[F.col(f"`{name}`") for name in frame.columns]), F.lit(len(roles.wheel)))
    # an array is a reference in the generated code, so a wheel that changes compiles nothing anew
    return F.element_at(F.array(*[F.lit(server) for server in roles.wheel]), turn.cast("int") + 1)
