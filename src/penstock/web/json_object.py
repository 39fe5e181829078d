"""JSON as the console takes and sends it."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
"""A JSON object. Its members are checked where a request comes in (`routes/bodies.py`)."""
