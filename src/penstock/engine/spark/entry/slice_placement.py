"""Which slices go to which task."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.connectors.contract import Slice


def by_group(slices: Sequence[Slice], parts: int) -> list[list[Slice]]:
    """Slices by the partition of their group of keys; a partition without any still gets its task."""
    return [[piece for piece in slices if piece.key_group() % parts == part] for part in range(parts)]


def spread(slices: Sequence[Slice], parts: int) -> list[list[Slice]]:
    """Slices over so many tasks, the heaviest first to the lightest task."""
    shares: list[list[Slice]] = [[] for _ in range(min(parts, len(slices)))]
    loads = [0] * len(shares)
    for piece in sorted(slices, key=lambda piece: -piece.weight()):
        lightest = loads.index(min(loads))
        shares[lightest].append(piece)
        loads[lightest] += piece.weight()
    return shares
