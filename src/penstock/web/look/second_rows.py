"""The last minute of each output as rows for a page. A second that is over is worked out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.control.utility import delay_at
from penstock.store.catalog.record_types import OutputSecond

Row = list[float | None]


class SecondRows:
    """Rows [second, tuples, median delay, delay at 99 %, age], by output.

    >>> second = OutputSecond("jams", 7, ((1.0, 90), (5.0, 10)))
    >>> SecondRows().rows({"jams": [second]})
    {'jams': [[7, 100, 1.0, 5.0, None]]}
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[OutputSecond, Row]] = {}

    def rows(self, seconds: Mapping[str, Sequence[OutputSecond]]) -> dict[str, list[Row]]:
        """The rows of these seconds; others are forgotten."""
        # By identity: to compare seconds would take as long as to work them out. Each is kept, so no other
        # object can have its number.
        self._known = {
            id(second): self._known.get(id(second)) or (second, _row(second))
            for each in seconds.values()
            for second in each
        }
        return {name: [self._known[id(second)][1] for second in each] for name, each in seconds.items()}


def _row(second: OutputSecond) -> Row:
    return [second.second, second.tuples, delay_at([second], 0.5), delay_at([second], 0.99), second.age]
