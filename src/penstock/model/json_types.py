"""JSON and YAML as they are read and written: text has no types, so who reads it checks what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON, or a mapping of YAML."""

JsonMapping: TypeAlias = Mapping[str, Any]
"""The same, only to be read."""
