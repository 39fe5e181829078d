"""The newest answers, for the live view: response times by type.

Idea: the answer files of the last trains are finished rows, so reading them shows what people want to see
during a run. Only a watched run pays for it; a rating does not look.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_FILES = 40
_MOST_BYTES = 256 << 10
"""Of a large answer file only the beginning is looked at."""


@dataclass
class LiveAnswers:
    r"""What the newest answer files show.

    >>> newest = LiveAnswers()
    >>> newest.read("1,300,300.900,107,42\n0,107,300,301.000,35,1250\n")
    >>> newest.wait(0), newest.wait(1)
    ((1.0, 1.0), (0.9, 0.9))
    """

    _waits: list[deque[float]] = field(default_factory=lambda: [deque(maxlen=4000) for _ in range(5)])

    def look(self, files: Iterable[Path]) -> None:
        """Read new answer files; skip files that are already gone."""
        for file in list(files)[-_FILES:]:
            with contextlib.suppress(OSError), file.open("rb") as stream:
                text = stream.read(_MOST_BYTES).decode()
                # The beginning of a large file may end within a row.
                self.read(text[: text.rfind("\n") + 1])

    def read(self, text: str) -> None:
        """Add some finished rows."""
        for line in text.splitlines():
            fields = line.split(",")
            kind, at = int(fields[0]), 2 if fields[0] == "0" else 1
            self._waits[kind].append(float(fields[at + 1]) - int(fields[at]))

    def wait(self, kind: int) -> tuple[float, float] | None:
        """Median and longest response time of the newest answers of a type, in seconds of the clock."""
        waits = sorted(self._waits[kind])
        return (round(waits[len(waits) // 2], 3), round(waits[-1], 3)) if waits else None
