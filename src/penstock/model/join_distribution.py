"""Options of `join(..., distribution="diffused" | "auto")` (Gu and Yu, Sect. 3; S08, S12).

`hash` sends all tuples of a key to one server; a hot key overloads that server. `diffused` spreads one
stream, the master, tuple by tuple over k servers and sends the other stream, the slave, to all of them.
`auto` starts as hash and becomes diffused when the hottest server's share of the load passes a threshold. All
three make the same pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

DISTRIBUTIONS = ("hash", "diffused", "auto")
MASTERS = ("higher", "lower", "left", "right")
PLACEMENTS = ("least_loaded", "round_robin")
WHEN_FULL = ("error", "drop", "replace")
EVEN = 1.4  # the default threshold: a server is hot when it has this many times its even share


@dataclass(frozen=True)
class Diffusion:
    """How a diffused join picks its master, its servers and its limits.

    `master`: the stream of the higher rate (default), of the lower rate (as the paper's text says), or always
    left or right. `sample`: the stream time over which rates and loads are measured, in microseconds.
    `threshold`: the share of the load at which `auto` changes (None: 1.4 times the even share). `memory`: how
    many tuples a server may keep (None: no limit). `when_full`: 'error', 'drop' the new tuple, or 'replace'
    the oldest.
    """

    master: str = "higher"
    placement: str = "least_loaded"
    sample: int = 10_000_000
    threshold: float | None = None
    memory: int | None = None
    when_full: str = "error"

    def hot(self, servers: int) -> float:
        """The share of the load above which the hottest of `servers` is too hot.

        >>> Diffusion().hot(2), Diffusion(threshold=0.5).hot(8)
        (0.7, 0.5)
        """
        return self.threshold if self.threshold is not None else min(1.0, EVEN / servers)
