"""Full counts for `make soak`, small ones for CI. What a test really did goes into the soak's JSON by name.

Write `count(3, soak=20)` for a number that the soak raises, and take the fixture `record_property` to tell
how many there were: `record_property("kills_of_a_driver", 20)`.
"""

from __future__ import annotations

import os

SOAK = os.environ.get("PENSTOCK_SOAK") == "1"


def count(ci: int, *, soak: int) -> int:
    """How many of something this run makes."""
    return soak if SOAK else ci
