"""How long a conductor waits between two looks at its inputs.

Each look costs some of a processor, whether or not anything is there. So the longer nothing has come, the
less often it looks. Whoever knows better wakes it.
"""

from __future__ import annotations

_SHORTEST, _LONGEST = 0.01, 0.05  # seconds
_PART = 20  # a pause is one part in so many of the time in which nothing came
_REFUSED = 0.1  # seconds between asking a policy that wakes whoever it grants a train later


def pause(quiet: float, *, refused: bool) -> float:
    """Seconds to wait. `quiet`: since the last train. `refused`: the policy has said None, and will wake us.

    >>> pause(0.1, refused=False), pause(0.5, refused=False), pause(60.0, refused=False)
    (0.01, 0.025, 0.05)
    >>> pause(0.1, refused=True)
    0.1
    """
    return _REFUSED if refused else min(max(_SHORTEST, quiet / _PART), _LONGEST)
