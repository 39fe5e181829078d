"""Sources and sinks in YAML, both ways, by the fields of their descriptions.

The first field is the main argument, the others stand beside it: `{csv: in/, schema: 'vid INT'}`. What a
field holds follows from its annotation, so a new description needs no code here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import NamedTuple, Never, cast

from penstock.model.errors import ExpressionError
from penstock.model.formats.description import Format, Options, Role, SinkFormat, SourceFormat
from penstock.model.formats.registry import description
from penstock.model.text.yaml_style import Form, OneLineList, OneLineMap, one_or_list
from penstock.model.text.yaml_value import YamlValue
from penstock.model.types import Schema
from penstock.model.user_functions import Function, function_of, name_of, needs_importable

# -- reading


def read_source(value: YamlValue) -> SourceFormat:
    """The description of a source."""
    return cast("SourceFormat", _read(value, "source"))


def read_sink(value: YamlValue) -> SinkFormat:
    """The description of an output; `console` alone is short for `{console: 20}`."""
    return cast("SinkFormat", _read(value, "sink"))


def _read(value: YamlValue, role: Role) -> Format:
    items = value.mapping() if value.is_map else {value.text(): value}
    name = next(iter(items), "")
    with value.located():
        kind = description(role, name)
    if not value.is_map:
        return _bare(value, kind)
    names = _names(kind, name)
    value.only(items, names)
    values = {part: items[key] for key, part in names.items() if key in items}
    _refuse_missing(items[name], kind, name, values)
    given = {
        field.name: _read_field(kind, field, values[field.name])
        for field in _written(kind)
        if field.name in values
    }
    with items[name].located():
        return kind(**given)


def _names(kind: type[Format], name: str) -> dict[str, str]:
    """The keys of the mapping, and the field of each.

    Without a field, the name stands alone: `{memory: {}}`.
    """
    written = [field.name for field in _written(kind)]
    return {name: written[0] if written else "", **{part: part for part in written[1:]}}


def _written(kind: type[Format]) -> list[Field[object]]:
    every = fields(kind)  # type: ignore[arg-type]  # formats are dataclasses
    return [field for field in every if field.metadata.get("in_yaml", True)]


def _required(field: Field[object]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _refuse_missing(main: YamlValue, kind: type[Format], name: str, values: Mapping[str, YamlValue]) -> None:
    for field in _written(kind):
        if _required(field) and field.name not in values:
            if field.name == "schema":
                raise main.wrong("needs to know its columns", expected="schema: name TYPE, ...")
            raise main.wrong(f"a {name} without '{field.name}'", expected=f"{field.name}: ...")


def _bare(value: YamlValue, kind: type[Format]) -> Format:
    if any(_required(field) for field in _written(kind)):
        raise value.wrong(f"'{kind.name}' needs an argument", expected=f"{{{kind.name}: ...}}")
    return kind()


def _read_field(kind: type[Format], field: Field[object], value: YamlValue) -> object:
    if _annotation(field) == "Options":
        pairs = read_pairs(value)
        with value.located():
            return kind.spell_options(pairs)
    return _way(field).read(value)


def read_schema(value: YamlValue) -> Schema:
    """Columns as text."""
    return value.read(Schema.parse, "columns")


def read_function(value: YamlValue) -> Function:
    """A function by its name."""
    if not value.is_text:
        with value.located():
            raise ExpressionError(
                "not a function's name", expected="module:function", hint=f"{value.part}: module:function"
            )
    return value.read(function_of, "module:function")


def read_pairs(value: YamlValue) -> Options:
    """Names and texts."""
    return tuple((name, text.text()) for name, text in value.mapping().items())


# -- writing


def format_form(given: SourceFormat | SinkFormat) -> Form:
    """The description as a YAML mapping: only what differs from a default, but always the main argument."""
    main, *others = _written(type(given)) or (None,)
    form: Form = {given.name: OneLineMap() if main is None else _write_field(main, getattr(given, main.name))}
    for field in others:
        value = getattr(given, field.name)
        if _required(field) or value != field.default:
            form[field.name] = _write_field(field, value)
    empty = [name for name, value in form.items() if value is None or value == []]
    form = {name: value for name, value in form.items() if name not in empty}
    # columns are long: they get a line of their own
    return form if "schema" in form else OneLineMap(form)


def _write_field(field: Field[object], value: object) -> object:
    write = cast("Callable[[object], object]", _way(field).write)
    return write(value)


def function_text(function: Function | None) -> str | None:
    """A function's name, if another process can find it by that."""
    return None if function is None else _importable(function.name)


def _importable(name: str) -> str:
    needs_importable(name)
    return name


def _rows_text(rows: object) -> str:
    if not callable(rows):
        raise ExpressionError(
            "rows of this process cannot be written down",
            expected="rows from a function that can be imported",
            hint="ps.rows(make_rows, schema), with make_rows at the top of a module",
        )
    return _importable(name_of(rows))


# -- what a field holds


class _Way(NamedTuple):
    """How a field is read and written."""

    read: Callable[[YamlValue], object]
    write: Callable[[Never], object]  # takes what the field holds


def _way(field: Field[object]) -> _Way:
    annotation = _annotation(field).removesuffix(" | None")
    if annotation not in _WAYS:
        raise TypeError(
            f"field '{field.name}: {annotation}' has no YAML form; "
            f"it may be one of: {', '.join(_WAYS)}, or have the metadata NOT_IN_YAML"
        )
    return _WAYS[annotation]


def _annotation(field: Field[object]) -> str:
    """The annotation without modules: a class, or its text where annotations are postponed."""
    text = field.type.__name__ if isinstance(field.type, type) else str(field.type)
    return re.sub(r"[\w.]*\.(?=\w)", "", text)


def _same(value: object) -> object:
    return value


def _schema_text(schema: Schema | None) -> str | None:
    return None if schema is None else schema.ddl()


_WAYS: Mapping[str, _Way] = {
    "str": _Way(YamlValue.text, _same),
    "int": _Way(YamlValue.whole_number, _same),
    "float": _Way(YamlValue.number, _same),
    "bool": _Way(YamlValue.flag, _same),
    "tuple[str, ...]": _Way(YamlValue.texts, lambda names: one_or_list(names) if names else OneLineList()),
    "Options": _Way(read_pairs, OneLineMap),
    "Schema": _Way(read_schema, _schema_text),
    "Function": _Way(read_function, function_text),
    "RowsOrFunction": _Way(lambda value: read_function(value).call, _rows_text),
    "TableFunction": _Way(lambda value: read_function(value).call, lambda call: _importable(name_of(call))),
}
