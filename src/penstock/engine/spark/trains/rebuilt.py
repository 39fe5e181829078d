"""Whether a train that ran again for its state did the same as the first time.

Only then is its state that of its commit. Input that has changed since, or a function that gives other
answers, would otherwise become wrong state that nobody notices. Counts tell: those of the sources, and those
of the boxes in stages. All tuples that can reach state pass through these, and they are always exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.contract.account import Account
from penstock.engine.contract.commit import Commit
from penstock.engine.spark.layout.plan import Layout
from penstock.engine.spark.tasks.state_parts import StateError
from penstock.model.boxes import Trait
from penstock.model.writing.network import Network
from penstock.rewrite.as_written import ESTIMATED, WrittenNames
from penstock.rewrite.subnetworks import reaching

_COUNTED = ("in", "out", "dead")
Counts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Compared:
    """What must be the same: the counts of `boxes`, as written, and the accounts of `sources`."""

    boxes: tuple[str, ...]  # in the order of the network: the first that differs is the cause
    sources: tuple[str, ...]

    @classmethod
    def of(cls, net: Network, layout: Layout, names: WrittenNames | None) -> Compared:
        """Boxes behind the last state may have changed since, and need not be the same."""
        above = reaching(net, (name for name, node in net.nodes.items() if Trait.STATEFUL in node.traits))
        sources = tuple(name for name in net.sources if name in above)
        inside = [name for name in net.nodes if name in above and name in layout.home]
        if names is None:
            return cls(tuple(inside), sources)
        told = {name: [share.box for share in shares] for name, shares in names.shares.items()}
        mine = dict.fromkeys(box for name in inside for box in told.get(name, [name]))
        others = {box for name, boxes in told.items() if name not in inside for box in boxes}
        return cls(tuple(box for box in mine if box not in others), sources)

    def check(self, directory: Path, commit: Commit, counts: Counts, accounts: Mapping[str, Account]) -> None:
        """Refuse a train that did something else than its commit says."""
        for name in self.sources:
            now, then = accounts.get(name), commit.accounts.get(name)
            if now and then and now != then:
                raise _differs(directory, commit.train, f"source '{name}'", _account(now), _account(then))
        for name in self.boxes:
            mine, known = counts.get(name, {}), commit.counts.get(name, {})
            exact = mine and known and ESTIMATED not in mine and ESTIMATED not in known
            if exact and _figures(mine) != _figures(known):
                raise _differs(directory, commit.train, f"box '{name}'", _figures(mine), _figures(known))


def _account(account: Account) -> str:
    return (
        f"{account.offered} offered, {account.let_in} let in, {account.dead} dead, {account.late} late, "
        f"{account.shed} shed"
    )


def _figures(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts.get(name, 0)} {name}" for name in _COUNTED)


def _differs(directory: Path, train: int, what: str, now: str, then: str) -> StateError:
    return StateError(
        f"{directory}: train {train} ran again to rebuild the state, but {what} did not do the same",
        found=now,
        expected=f"{then}, as its commit says",
        hint="its input has changed since, or a function gives other answers for the same tuples; "
        "restore the input or mend the function and start again, or restore the checkpoint from a copy",
    )
