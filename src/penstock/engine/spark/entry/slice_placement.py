"""Which packed slices go to which task. What a slice holds travels packed: one record carries its bytes, and the box that
needs columns unpacks them.
"""

from __future__ import annotations

from penstock.engine.contract.ticket import Slice

PACKED = ("bytes", "spool", "groups", "rate", "feed")


def by_group(slices: list[tuple[str, Slice]], parts: int) -> list[list[tuple[str, Slice]]]:
    """Slices by the partition of their group; a partition without any still gets its task."""
    return [[item for item in slices if item[1]["group"] % parts == part] for part in range(parts)]


def spread(slices: list[tuple[str, Slice]], parts: int) -> list[list[tuple[str, Slice]]]:
    """Slices over so many tasks, the heaviest first to the lightest task."""
    bins: list[list[tuple[str, Slice]]] = [[] for _ in range(min(parts, len(slices)))]
    loads = [0] * len(bins)
    for item in sorted(slices, key=lambda s: -_weight(s[1])):
        lightest = loads.index(min(loads))
        bins[lightest].append(item)
        loads[lightest] += _weight(item[1])
    return bins


def _weight(slice_: Slice) -> int:
    return (
        int(slice_["end"] - slice_["start"])
        if slice_["kind"] in ("bytes", "feed")
        else int(slice_["rows"]) * 20
    )
