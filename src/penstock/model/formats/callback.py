"""A function of this process as a sink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.model.errors import ExpressionError, shown
from penstock.model.formats.description import SinkFormat
from penstock.model.user_functions import name_of

if TYPE_CHECKING:
    import pyarrow as pa

    TableFunction = Callable[[pa.Table], None]


@dataclass(frozen=True, eq=False)
class Callback(SinkFormat):
    """Calls a Python function with each train's rows as an Arrow table.

    After a crash a train may come again.
    """

    name: ClassVar[str] = "callback"
    sink: ClassVar[str] = "penstock.connectors.callback:CallbackSink"
    in_process: ClassVar[bool] = True

    function: TableFunction

    def text(self) -> str:
        return f"callback {name_of(self.function)}"

    def identity(self) -> object:
        return Callback, name_of(self.function)


def callback(function: TableFunction) -> Callback:
    """A function that is called with each train's rows."""
    if not callable(function):
        raise ExpressionError(
            "not a function", found=shown(function), expected="a function of one Arrow table"
        )
    return Callback(function)
