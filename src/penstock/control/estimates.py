"""How far off approximate answers may be (A08): the standard error of count, sum and avg over a sample.

Under `approximate: true` a window is computed from the share p of its tuples that a hash has kept. So count
and sum, divided by p, estimate the exact ones, and avg estimates itself. With n tuples kept in an answer:

- count: relative variance (1 - p) / n, as each tuple was kept or not by itself;
- sum: (1 - p) (1 + c^2) / n, where c is the standard deviation of the column by its mean;
- avg: (1 - p) c^2 / n.

Where tuples go in blocks of g, tuples of an answer go together. A block spreads over the answers of a window
as its tuples do, so to 1 / n comes g / w, where w is the number of tuples kept in the whole window. If the
share changed while the window was open, between p and q, dividing by the middle is wrong by up to half of
the difference: that is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class KeptSample:
    """What the tuples of an answer are a sample of.

    `least`, `most`: the shares kept while its window was open. `together`: tuples that a hash keeps or drops
    at once. `window`: tuples kept in the whole window, whatever their keys.
    """

    least: float
    most: float
    window: float
    together: int = 1

    @property
    def share(self) -> float:
        """Divide counts and sums by this to estimate the exact ones.

        >>> KeptSample(0.4, 0.6, 1000).share
        0.5
        """
        return (self.least + self.most) / 2

    def count_error(self, tuples: float) -> float | None:
        """The relative standard error of a count of so many tuples, divided by the share; None: unknown.

        >>> KeptSample(0.5, 0.5, 10_000).count_error(50)
        0.1
        >>> KeptSample(1.0, 1.0, 10_000).count_error(50)
        0.0
        """
        return self._error(tuples, 1.0, scaled=True)

    def sum_error(self, tuples: float, spread: float) -> float | None:
        """The same of a sum. `spread`: standard deviation of the column by its mean."""
        return self._error(tuples, 1.0 + spread**2, scaled=True)

    def mean_error(self, tuples: float, spread: float) -> float | None:
        """The same of an average, which needs no dividing."""
        return self._error(tuples, spread**2, scaled=False)

    def _error(self, tuples: float, factor: float, *, scaled: bool) -> float | None:
        if self.least >= 1:
            return 0.0
        if tuples <= 0 or self.window <= 0 or self.least <= 0:
            return None  # nothing was kept: nothing can be said
        blocks = self.together / max(self.window, tuples) if self.together > 1 else 0.0
        moved = (self.most - self.least) / (self.most + self.least) if scaled else 0.0
        return math.sqrt((1 - self.least) * factor * (1 / tuples + blocks) + moved**2)
