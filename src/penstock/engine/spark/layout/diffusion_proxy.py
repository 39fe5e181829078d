"""The load diffusion proxy on Spark (S06-S08): give each tuple its owner and servers before the shuffle.

A server is a partition of the join's stage. The result depends only on the ticket's roles and the tuple
itself. So a repeated task or a replayed train sends each tuple where it went before.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.engine.arrow.boxes.diffused_join import OWNER
from penstock.model.diffused.roles import HASH, Roles

SERVER = "_p"


def routed(frame: DataFrame, side: int, keys: list[Column], roles: Roles) -> DataFrame:
    """The tuples of one side with `_owner` and `_p`, the server; repeated for each if meant for all."""
    placed = frame.withColumn(OWNER, _owner(frame, keys, roles).cast("int"))
    if not roles.everywhere(side):
        return placed.withColumn(SERVER, F.col(OWNER))
    return placed.withColumn(SERVER, F.explode(F.sequence(F.lit(0), F.lit(roles.servers - 1))))


def _owner(frame: DataFrame, keys: list[Column], roles: Roles) -> Column:
    if roles.scheme == HASH:
        return F.pmod(F.xxhash64(*keys), F.lit(roles.servers))
    # Hash the whole tuple: after a window or a join, `_seq` alone is not enough.
    turn = F.pmod(F.xxhash64(*[F.col(f"`{name}`") for name in frame.columns]), F.lit(len(roles.wheel)))
    # An array reaches the generated code by reference, so a changed wheel needs no compilation.
    return F.element_at(F.array(*[F.lit(server) for server in roles.wheel]), turn.cast("int") + 1)
