"""Where a late tuple is refused: one whose timestamp is behind the horizon that earlier trains have promised.

One rule, three ways in. Decoded tuples are checked as Arrow columns (`in_time`). Tuples of Parquet files are
checked by Spark (`late_case`), unless the files' footers tell the driver enough (`bad_times.py`). A tuple can
also be late inside the network, for example behind a slow join; then the box refuses it
(`engine/arrow/order.py`).
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow.logic import dead_letters
from penstock.engine.spark.entry.by_reference import by_reference
from penstock.engine.spark.entry.stamping import Admitted
from penstock.model.boxes import Source
from penstock.model.types import STAMP

_LATE = ("late: timestamp ", " us is behind the horizon ", " us of earlier trains")


def late_reason(ts: int, horizon: int) -> str:
    """Why a tuple is refused as late.

    >>> late_reason(5, 7)
    'late: timestamp 5 us is behind the horizon 7 us of earlier trains'
    """
    late, behind, of_trains = _LATE
    return f"{late}{ts}{behind}{horizon}{of_trains}"


def late_case(time: str, horizon: int) -> tuple[str, str]:
    """SQL of the same: when a tuple is late, and the reason; `time` is an expression for its timestamp."""
    limit = by_reference(horizon, time)
    late, behind, of_trains = _LATE
    reason = f"concat('0:{late}', {time}, '{behind}', {limit}, '{of_trains}')"
    return f"{time} < {limit}", reason


def in_time(source: Source, admitted: Admitted, horizon: int) -> Admitted:
    """Without the tuples behind the horizon; these become dead letters."""
    table = admitted.tuples
    if source.timestamp is None or not table.num_rows:
        return admitted
    late = pc.less(table.column(STAMP), horizon)
    if not pc.any(late).as_py():
        return admitted
    rows = table.filter(late)
    reasons = [late_reason(ts, horizon) for ts in rows.column(STAMP).to_pylist()]
    letters = dead_letters(rows, reasons, source.name)
    return Admitted(table.filter(pc.invert(late)), pa.concat_tables([admitted.dead, letters]))
