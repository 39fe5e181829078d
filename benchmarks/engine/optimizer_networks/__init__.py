"""Eight networks as users write them (`NAME.yaml`), and the best form by hand of each (`NAME.by_hand.yaml`).

They were written before the optimizer had any rule, and are its test: it must come close to the best form by
hand. Both forms give the same rows, dead letters included. Linear Road's own network is written in Python and
taken as it is: nobody has found a better form by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

import penstock as ps
from penstock.linear_road import road_network

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Pair:
    """One network in both forms, and what is wrong with it as written."""

    name: str
    flaw: str

    def as_written(self) -> ps.Network:
        return linear_road() if self.name == "linear_road" else ps.from_yaml(HERE / f"{self.name}.yaml")

    def by_hand(self) -> ps.Network:
        return (
            linear_road() if self.name == "linear_road" else ps.from_yaml(HERE / f"{self.name}.by_hand.yaml")
        )


PAIRS = (
    Pair("filter_order", "a costly function filters first, a cheap predicate behind it"),
    Pair("behind_join", "a filter on one side's columns, and on the key, stands behind the join"),
    Pair("behind_union", "a filter stands behind a union of scored streams"),
    Pair("wide_csv", "30 columns enter a window that reads 3"),
    Pair("split_filters", "three filters stand between maps and a function"),
    Pair("point_query", "an ad-hoc query at a keyed point maps first, so the key is of no use"),
    Pair("linear_road", "nothing"),
    Pair("readme", "nothing; the ten lines of the README"),
)


def linear_road() -> ps.Network:
    """The network of the benchmark, without history; it is described, not run."""
    scratch = Path(gettempdir()) / "penstock-optimizer"
    return road_network(None, scratch / "in", scratch / "out")
