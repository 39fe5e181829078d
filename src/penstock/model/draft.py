"""A box being written: its name and line are known before its arguments are read, so each error can name both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.model.boxes import Function, Node
from penstock.model.durations import Extent, parse_duration, parse_extent
from penstock.model.errors import ExpressionError, NetworkError, Where, did_you_mean
from penstock.model.places import placed
from penstock.model.qos import QoS
from penstock.model.types import Schema
from penstock.model.user_functions import function_of

if TYPE_CHECKING:
    from penstock.model.network import Network
    from penstock.model.stream import Stream

Duration = str | float
UserFunction = Callable[..., Any] | str | Function
QoSLike = QoS | Mapping[str, Any] | None


@dataclass(frozen=True)
class Draft:
    """Reads arguments in the one way of all boxes, then adds the box to the network."""

    network: Network
    make: Callable[..., Node]
    name: str
    where: Where

    def part(self, part: str) -> AbstractContextManager[None]:
        """Errors inside are about this argument of this box."""
        return placed(self.name, self.where, part=part)

    def duration(self, part: str, text: Duration) -> int:
        with self.part(part):
            return parse_duration(text)

    def extent(self, part: str, text: Duration | Extent) -> Extent:
        with self.part(part):
            return parse_extent(text)

    def schema(self, part: str, text: str | Schema) -> Schema:
        with self.part(part):
            return Schema.parse(text) if isinstance(text, str) and text else text or Schema()  # type: ignore[return-value]

    def function(self, given: UserFunction | None) -> Function | None:
        with self.part("function"):
            return None if given is None else function_of(given)

    def qos(self, given: QoSLike) -> QoS | None:
        with self.part("qos"):
            if not isinstance(given, Mapping):
                return given
            for key in given:
                if key not in QoS.__dataclass_fields__:
                    raise ExpressionError(
                        f"unknown part '{key}'", hint=did_you_mean(key, QoS.__dataclass_fields__)
                    )
            return QoS(**{"delay": (), **given})

    def add(self, inputs: Iterable[Stream], **config: Any) -> Stream:
        """Check the box against its inputs and put it into the network."""
        names = []
        for stream in inputs:
            if stream.network is not self.network:
                raise NetworkError(f"'{stream.name}' belongs to another network", box=self.name, where=self.where, found=f"network '{stream.network.name}'", expected=f"network '{self.network.name}'", hint="a connection point is where networks meet")  # fmt: skip
            names.append(stream.name)
        return self.network.add(self.make(name=self.name, inputs=tuple(names), where=self.where, **config))


def names(given: str | Iterable[str]) -> tuple[str, ...]:
    """One name or several.

    >>> names("a"), names(["a", "b"])
    (('a',), ('a', 'b'))
    """
    return (given,) if isinstance(given, str) else tuple(given)
