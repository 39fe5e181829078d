"""How a join is spread over servers: the options of `join(..., distribution="diffused" | "auto")` (Gu and Yu, Sect. 3; S08, S12).

`hash` sends tuples of a key to one server, which a hot key keeps busy alone. `diffused` spreads one stream, the master, tuple by
tuple over k servers and sends the other, the slave, to all of them. `auto` starts as hash and becomes diffused when the
hottest server's share of the load passes a threshold. The pairs are the same in all three.
"""

from __future__ import annotations

from dataclasses import dataclass

DISTRIBUTIONS = ("hash", "diffused", "auto")
MASTERS = ("higher", "lower", "left", "right")
PLACEMENTS = ("least_loaded", "round_robin")
WHEN_FULL = ("error", "drop", "replace")
EVEN = 1.4  # without a threshold of its own, a server is hot when it has so many times its even share


@dataclass(frozen=True)
class Diffusion:
    """`master`: the stream of the higher rate (default), of the lower one (the paper's sentence), or always left or right.

    `sample`: over how much stream time rates and loads are measured, in microseconds. `threshold`: the share of the load at
    which `auto` changes (None: 1.4 times the even share). `memory`: tuples that a server may keep (None: as many as
    the machine can hold); `when_full`: 'error', 'drop' the new tuple, or 'replace' the oldest.
    """

    master: str = "higher"
    placement: str = "least_loaded"
    sample: int = 10_000_000
    threshold: float | None = None
    memory: int | None = None
    when_full: str = "error"

    def hot(self, servers: int) -> float:
        """The share of the load above which the hottest of so many servers is too hot.

        >>> Diffusion().hot(2), Diffusion(threshold=0.5).hot(8)
        (0.7, 0.5)
        """
        return self.threshold if self.threshold is not None else min(1.0, EVEN / servers)
