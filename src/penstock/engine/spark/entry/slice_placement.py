"""Which slices go to which task."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.connectors.contract import Slice


def by_group(slices: Sequence[Slice], parts: int) -> list[list[Slice]]:
    """Group slices by the partition of their key group; a partition without any still gets a task."""
    return [[piece for piece in slices if piece.key_group() % parts == part] for part in range(parts)]


def spread(slices: Sequence[Slice], parts: int) -> list[list[Slice]]:
    """Spread slices over the tasks: the heaviest slice first, each to the lightest task."""
    shares: list[list[Slice]] = [[] for _ in range(min(parts, len(slices)))]
    loads = [0] * len(shares)
    for piece in sorted(slices, key=lambda piece: -piece.weight()):
        lightest = loads.index(min(loads))
        shares[lightest].append(piece)
        loads[lightest] += piece.weight()
    return shares
