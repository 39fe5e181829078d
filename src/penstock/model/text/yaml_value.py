"""A value in a YAML text that knows its line, so that each error can name it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

import yaml

from penstock.model.error_location import located
from penstock.model.errors import ExpressionError, NetworkError, Where, did_you_mean

T = TypeVar("T")


@dataclass(frozen=True)
class YamlValue:
    """One YAML value, the box in which it stands and what it is called there."""

    node: yaml.Node
    file: str
    box: str = ""
    part: str = ""

    @property
    def where(self) -> Where:
        return Where(self.file, self.node.start_mark.line + 1)

    def located(self) -> AbstractContextManager[None]:
        """Errors inside are about this value."""
        return located(self.box, self.where, part=self.part)

    def wrong(self, problem: str, *, found: str = "", expected: str = "", hint: str = "") -> NetworkError:
        """An error about this value."""
        text = f"{self.part}: {problem}" if self.part else problem
        return NetworkError(text, box=self.box, where=self.where, found=found, expected=expected, hint=hint)

    @property
    def is_text(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode)

    @property
    def is_map(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    def text(self) -> str:
        """The scalar as it was written: `filter: true` means the predicate 'true'."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.wrong("not a text", found=_kind(self.node), expected="a text")
        return str(self.node.value)

    def read(self, parse: Callable[[str], T], expected: str) -> T:
        """The text through a parser; a ValueError becomes an error with this place."""
        text = self.text()
        with self.located():
            try:
                return parse(text)
            except ValueError:
                raise ExpressionError("cannot be read", found=f"'{text}'", expected=expected) from None

    def number(self) -> float:
        return self.read(float, "a number")

    def whole_number(self) -> int:
        return self.read(int, "a whole number")

    def flag(self) -> bool:
        text = self.text().lower()
        if text not in ("true", "false"):
            raise self.wrong("is neither true nor false", found=f"'{text}'", expected="true or false")
        return text == "true"

    def values(self) -> list[YamlValue]:
        """The values of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wrong("not a list", found=_kind(self.node), expected="a list, [a, b]")
        return [YamlValue(value, self.file, self.box, self.part) for value in self.node.value]

    def texts(self) -> tuple[str, ...]:
        """One text or a list of them."""
        return (self.text(),) if self.is_text else tuple(value.text() for value in self.values())

    def mapping(self, *, box: str | None = None) -> dict[str, YamlValue]:
        """The values of a mapping by key, in order.

        A key that stands twice is refused, where YAML takes the last.
        """
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong("not a mapping", found=_kind(self.node), expected="key: value")
        values: dict[str, YamlValue] = {}
        for key_node, value in self.node.value:
            key = YamlValue(key_node, self.file, self.box, self.part)
            name = key.text()
            if name in values:
                first = values[name].where.line
                raise NetworkError(
                    f"'{name}' appears twice",
                    box=self.box,
                    where=key.where,
                    found=f"the first is at line {first}",
                    hint="give one of them another name",
                )
            values[name] = YamlValue(value, self.file, self.box if box is None else box, name)
        return values

    def keys_at(self) -> dict[str, Where]:
        """The line of each key of a mapping."""
        pairs: Iterable[tuple[yaml.Node, yaml.Node]] = self.node.value
        return {str(key.value): Where(self.file, key.start_mark.line + 1) for key, _ in pairs}

    def only(self, values: dict[str, YamlValue], allowed: Iterable[str]) -> None:
        """Refuse keys that mean nothing here."""
        known = tuple(allowed)
        for name in values:
            if name not in known:
                raise NetworkError(
                    f"unknown key '{name}'",
                    box=self.box,
                    where=self.keys_at()[name],
                    expected=f"one of: {', '.join(known)}",
                    hint=did_you_mean(name, known),
                )


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return f"'{node.value}'"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"
