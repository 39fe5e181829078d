"""Networks that must be refused, one mistake each; what they say stands in golden/<function name>.txt."""

from __future__ import annotations

from model.wrong_networks import (
    arguments,
    combining,
    ends,
    expressions,
    qos,
    shape,
    sources,
    windows,
    yaml_texts,
)
from model.wrong_networks.cases import CASES

__all__ = [
    "CASES",
    "arguments",
    "combining",
    "ends",
    "expressions",
    "qos",
    "shape",
    "sources",
    "windows",
    "yaml_texts",
]
