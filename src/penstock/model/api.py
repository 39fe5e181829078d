"""What one writes a network with: the names that `import penstock as ps` gives, in one place."""

from __future__ import annotations

from penstock.model.control_settings import ControlSettings
from penstock.model.durations import Count, Time
from penstock.model.error_location import with_location
from penstock.model.errors import ExpressionError, NetworkError, PenstockError
from penstock.model.formats.callback import callback as _callback
from penstock.model.formats.console import console as _console
from penstock.model.formats.feed import feed as _feed
from penstock.model.formats.files import csv as _csv
from penstock.model.formats.files import json as _json
from penstock.model.formats.files import parquet as _parquet
from penstock.model.formats.files import stamped
from penstock.model.formats.memory import memory
from penstock.model.formats.rate import rate as _rate
from penstock.model.formats.rows import rows as _rows
from penstock.model.qos import QoS
from penstock.model.text.yaml_form import from_yaml, to_yaml
from penstock.model.types import Schema
from penstock.model.user_functions import Function
from penstock.model.writing.combining import group_by, union
from penstock.model.writing.multiway_join import Join, join
from penstock.model.writing.network import Network
from penstock.model.writing.stream import Stream
from penstock.model.writing.windows import column_latch, latch

csv, json, parquet, rows = (
    with_location(_csv),
    with_location(_json),
    with_location(_parquet),
    with_location(_rows),
)
feed, rate, console, callback = (
    with_location(_feed),
    with_location(_rate),
    with_location(_console),
    with_location(_callback),
)

__all__ = [
    "ControlSettings",
    "Count",
    "ExpressionError",
    "Function",
    "Join",
    "Network",
    "NetworkError",
    "PenstockError",
    "QoS",
    "Schema",
    "Stream",
    "Time",
    "callback",
    "column_latch",
    "console",
    "csv",
    "feed",
    "from_yaml",
    "group_by",
    "join",
    "json",
    "latch",
    "memory",
    "parquet",
    "rate",
    "rows",
    "stamped",
    "to_yaml",
    "union",
]
