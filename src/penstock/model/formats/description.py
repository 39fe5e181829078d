"""What every source and sink description has in common.

A description is a frozen dataclass: its fields are the options, and its YAML form follows from them. The
first field is the main argument (`{csv: in/}`), the others stand beside it. The description says what to read
or write; the class that its `input` or `sink` names does it. Describing therefore needs no driver of any
system.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, ClassVar, Literal

from penstock.model.errors import ExpressionError, shown

if TYPE_CHECKING:
    from penstock.model.types import Schema

Options = tuple[tuple[str, str], ...]
Role = Literal["source", "sink"]
ShedBy = Literal["slices", "blocks", "tuples"]
NOT_IN_YAML = {"in_yaml": False}
"""Metadata of a field that no text form has: its value lives in this process, or is always the same."""


class Format:
    """A description of a source or a sink. Subclasses are frozen dataclasses."""

    name: ClassVar[str] = ""
    """The word in YAML and in error messages; a third party also registers the class under it."""
    in_process: ClassVar[bool] = False
    """True if only the very same object is the same description: a list or a callback of this process."""

    def text(self) -> str:
        """One line for `explain` and the pictures."""
        mine = fields(self)  # type: ignore[arg-type]  # subclasses are dataclasses
        written = [field for field in mine if field.metadata.get("in_yaml", True)]
        main = f" {getattr(self, written[0].name)}" if written else ""
        return f"{self.name}{main}"

    def identity(self) -> object:
        """What is compared when two networks are. What lives in this process goes by its name."""
        return self

    def check(self, role: Role) -> None:
        """Refuse, with an ExpressionError, what means nothing in this role."""

    @property
    def directory(self) -> str | None:
        """The directory that is read or written; two outputs must not share one."""
        return None

    @classmethod
    def spell_options(cls, options: Iterable[tuple[str, object]]) -> Options:
        """Options in their one spelling; an unknown one is refused."""
        return tuple((name, str(value)) for name, value in options)


class SourceFormat(Format):
    """A description of where tuples come from."""

    input: ClassVar[str] = ""
    """'module:Class' of the `connectors.contract.Input` that reads it, or a function that gives one.

    It is loaded when a network runs.
    """
    in_order: ClassVar[bool] = False
    """True if slices come in order of time and know their time unread: no tuple is ever late."""
    stays: ClassVar[bool] = False
    """True if what was read can be read again, as long as no machine fails: nobody deletes it."""
    shed_by: ClassVar[ShedBy] = "tuples"
    """What can be left out at once under overload: unread slices, undecoded blocks of lines, or tuples."""
    slice_bits: ClassVar[int] = 40
    """The low bits of `_seq` that number the tuples of one slice; those above number the slice."""
    schema: Schema | None

    @property
    def partitioned_by(self) -> tuple[str, ...] | None:
        """Keys by which the writer has put tuples into groups, so that nothing need be shuffled.

        None: it has not.
        """
        return None

    @property
    def read_once(self) -> bool:
        """True if only one reader can have the tuples."""
        return False


class SinkFormat(Format):
    """A description of where tuples go."""

    sink: ClassVar[str] = ""
    """'module:Class' of the `connectors.contract.Sink` that writes it, loaded when a network runs."""


def checked_path(path: str) -> str:
    """The path, if a file can have it."""
    if "\0" in path:
        raise ExpressionError(
            "no file can have this path", found=shown(path), expected="a path without the character NUL"
        )
    return path
