"""How the YAML text of a network looks: what stands on one line, what needs quotes."""

from __future__ import annotations

import re
from collections.abc import Iterable

import yaml

Form = dict[str, object]
"""What becomes a YAML mapping: texts, numbers, lists and mappings of them."""


class OneLineList(list[object]):
    """A list that is written on one line."""


class OneLineMap(dict[str, object]):
    """A mapping that is written on one line."""


class Dumper(yaml.SafeDumper):
    """Writes YAML 1.2: only true and false are booleans, and no value is written as an alias."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - whatever the data
        return True


_BOOL = "tag:yaml.org,2002:bool"
# YAML 1.2: only true and false are booleans, so that the key `on` of a join needs no quotes
Dumper.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
    for first, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
}
Dumper.add_implicit_resolver(_BOOL, re.compile("(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    # PyYAML writes the line ends of Unicode as they are and reads them back as blanks, unless they are
    # escaped
    style = '"' if re.search("[\x85\u2028\u2029]", text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(
    OneLineList,
    lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True),
)
Dumper.add_representer(
    OneLineMap, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)
)
Dumper.add_representer(str, _text)


def given(**parts: object) -> Form:
    """Only those that say something."""
    return {key: value for key, value in parts.items() if value not in (None, "", (), [], {})}


def one_or_list(names: Iterable[str]) -> str | OneLineList:
    """A single name by itself, several as a list on one line."""
    texts = list(names)
    return texts[0] if len(texts) == 1 else OneLineList(texts)
