"""Dead letters of native boxes as Spark words them: the same text whichever way the train runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime

import pyarrow as pa

from penstock.model.types import Schema


def as_spark_words(dead: pa.Table, schema: Schema) -> pa.Table:
    """The letters with their tuples as Spark's `to_json` shows them; `schema`: of these tuples.

    Texts that are no tuples, such as a malformed line, stay as they are.
    """
    if not dead.num_rows:
        return dead
    forms = {c.name: _FORMS[c.type] for c in schema if c.type in _FORMS}
    raw = pa.array([_spark_json(text, forms) for text in dead.column("raw").to_pylist()], pa.string())
    return dead.set_column(0, "raw", raw)


def _spark_json(text: str, forms: dict[str, Callable[[str], str]]) -> str:
    try:
        row = json.loads(text)
    except ValueError:
        return text
    if not isinstance(row, dict):
        return text
    values = {k: forms[k](v) if k in forms and isinstance(v, str) else v for k, v in row.items()}
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)


def _time(text: str) -> str:
    """A time to the millisecond, in UTC.

    >>> _time("2026-01-01T00:00:05+00:00")
    '2026-01-01T00:00:05.000Z'
    """
    return datetime.fromisoformat(text).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# Bytes are base64 on either way.
_FORMS: dict[str, Callable[[str], str]] = {"TIMESTAMP": _time}
