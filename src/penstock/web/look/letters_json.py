"""Dead letters as JSON: how many by box and reason, the newest rows, all of them as CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path

from penstock.model.json_types import JsonObject
from penstock.store.dead_letters import SCHEMA, DeadLetters, reason_shape

_LONGEST = 400  # characters of raw text on the page; the download has all of it


def letters_json(checkpoint: Path, box: str | None, reason: str | None, most: int) -> JsonObject:
    """Counts by box and shape of reason, and the newest letters that fit `box` and `reason`."""
    counts: Counter[tuple[str, str]] = Counter()
    newest: deque[JsonObject] = deque(maxlen=most)
    for letter in _letters(checkpoint):
        key = (letter["box"] or "", reason_shape(letter["reason"] or ""))
        counts[key] += letter["tuples"]
        if box in (None, key[0]) and reason in (None, key[1]):
            newest.append({**letter, "raw": (letter["raw"] or "")[:_LONGEST]})
    reasons = [{"box": b, "reason": r, "tuples": n} for (b, r), n in counts.most_common()]
    return {"total": counts.total(), "reasons": reasons, "rows": list(newest)[::-1]}


def letters_csv(checkpoint: Path) -> Iterator[bytes]:
    """All letters as CSV, piece by piece."""
    yield _line(SCHEMA.names)
    for letter in _letters(checkpoint):
        yield _line(["" if value is None else str(value) for value in letter.values()])


def _line(values: list[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode(errors="replace")


def _letters(checkpoint: Path) -> Iterator[JsonObject]:
    for table in DeadLetters(checkpoint).tables():
        yield from table.to_pylist()
