"""Builds one box: it knows the name and line before it reads the arguments, so every error can name both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from penstock.model.boxes import Node
from penstock.model.durations import Extent, parse_duration, parse_extent
from penstock.model.error_location import located
from penstock.model.errors import ExpressionError, NetworkError, Where, did_you_mean, shown
from penstock.model.qos import QoS
from penstock.model.types import Schema, parse_schema
from penstock.model.user_functions import Function, function_of
from penstock.model.writing.arguments import texts
from penstock.model.writing.arrow import OutgoingArrow

if TYPE_CHECKING:
    from penstock.model.writing.network import Network
    from penstock.model.writing.stream import Stream

Duration = str | float
UserFunction = Callable[..., object] | str | Function
QoSLike = QoS | Mapping[str, object] | None


@dataclass(frozen=True)
class BoxBuilder:
    """Reads arguments in the one way of all boxes, then adds the box to the network."""

    network: Network
    make: Callable[..., Node]
    name: str
    where: Where

    def part(self, part: str) -> AbstractContextManager[None]:
        """Errors inside are about this argument of this box."""
        return located(self.name, self.where, part=part)

    def duration(self, part: str, text: Duration) -> int:
        with self.part(part):
            return parse_duration(text)

    def extent(self, part: str, text: Duration | Extent) -> Extent:
        with self.part(part):
            return parse_extent(text)

    def schema(self, part: str, text: str | Schema) -> Schema:
        with self.part(part):
            return parse_schema(text) if text else Schema()

    def texts(
        self, part: str, given: Mapping[str, str] | None, more: Mapping[str, str]
    ) -> tuple[tuple[str, str], ...]:
        with self.part(part):
            return texts(given, more)

    def function(self, given: UserFunction | None) -> Function | None:
        with self.part("function"):
            return None if given is None else function_of(given)

    def qos(self, given: QoSLike) -> QoS | None:
        with self.part("qos"):
            if given is None or isinstance(given, QoS):
                return given
            if not isinstance(given, Mapping):
                raise ExpressionError(
                    "not a quality of service",
                    found=shown(given),
                    expected="a QoS, or a dict of its graphs",
                    hint="ps.QoS(delay=[(0, 1.0), (5, 1.0), (30, 0.0)])",
                )
            for key in given:
                if key not in QoS.__dataclass_fields__:
                    raise ExpressionError(
                        f"unknown part '{key}'", hint=did_you_mean(key, QoS.__dataclass_fields__)
                    )
            # Without a delay graph QoS would raise a TypeError; an empty one gives the proper message.
            return cast("Callable[..., QoS]", QoS)(**{"delay": (), **given})

    def add(self, inputs: Iterable[Stream], **config: object) -> Stream:
        """Check the box against its inputs and put it into the network."""
        names = []
        for stream in self._streams(inputs):
            if stream.network is not self.network:
                raise NetworkError(
                    f"'{stream.name}' belongs to another network",
                    box=self.name,
                    where=self.where,
                    found=f"network '{stream.network.name}'",
                    expected=f"network '{self.network.name}'",
                    hint="a connection point is where networks meet",
                )
            names.append(stream.name)
        return self.network.add(self.make(name=self.name, inputs=tuple(names), where=self.where, **config))

    def _streams(self, inputs: Iterable[Stream]) -> Iterable[Stream]:
        for stream in inputs:
            if not isinstance(stream, OutgoingArrow):
                raise NetworkError(
                    "an input is not a stream",
                    box=self.name,
                    where=self.where,
                    found=shown(stream),
                    expected="what a source or a box returned",
                    hint='net.stream("name") gives the stream of a node',
                )
            yield stream
