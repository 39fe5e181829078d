"""Edits as steps on the picture (A40): put a box onto an arrow, change one, take one out. All end as YAML."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from penstock.model.errors import did_you_mean
from penstock.model.json_types import JsonMapping, JsonObject
from penstock.web.errors import RefusedChangeError, UnknownNameError

_MANY = ("union", "join")  # boxes whose main argument names their inputs


def edited(text: str, steps: Sequence[JsonMapping]) -> str:
    """The YAML of a network after some steps.

    >>> text = "{network: n, boxes: {a: {source: {rate: 5}}, b: {output: console, from: a}}}"
    >>> step = {"do": "insert", "arrow": "a:b:0", "name": "f", "box": {"filter": "value > 1"}}
    >>> yaml.safe_load(edited(text, [step]))["boxes"]["b"]["from"]
    'f'
    """
    plain = yaml.safe_load(text)
    for step in steps:
        do = _DO.get(str(step.get("do")))
        if do is None:
            raise RefusedChangeError(
                f"no step '{step.get('do')}'", expected=f"one of: {', '.join(_DO)}", hint="see /docs"
            )
        do(plain["boxes"], step)
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)


def _insert(boxes: JsonObject, step: JsonMapping) -> None:
    name, (tail, head, index) = _free(boxes, step), _arrow(boxes, step)
    box = {**_box(step), "from": tail}
    reads = inputs_of(boxes[head])
    reads[index] = name
    _read(boxes[head], reads)
    _put_before(boxes, head, name, box)


def _add(boxes: JsonObject, step: JsonMapping) -> None:
    boxes[_free(boxes, step)] = _box(step)


def _change(boxes: JsonObject, step: JsonMapping) -> None:
    name = _known(boxes, str(step.get("name")))
    kept = {key: boxes[name][key] for key in ("from", "group") if key in boxes[name]}
    boxes[name] = {**_box(step), **{key: value for key, value in kept.items() if key not in _box(step)}}


def _remove(boxes: JsonObject, step: JsonMapping) -> None:
    """Take a box out; its readers read what it read."""
    name = _known(boxes, str(step.get("name")))
    reads = inputs_of(boxes[name])
    readers = [other for other in boxes if name in inputs_of(boxes[other])]
    if readers and len(reads) != 1:
        raise RefusedChangeError(
            f"'{name}' has {len(reads)} inputs and feeds {', '.join(readers)}",
            hint="remove what it feeds first, or change the YAML",
        )
    for other in readers:
        _read(boxes[other], [reads[0] if each == name else each for each in inputs_of(boxes[other])])
    del boxes[name]


_DO = {"insert": _insert, "add": _add, "change": _change, "remove": _remove}


def inputs_of(box: JsonMapping) -> list[str]:
    """What a box in YAML reads."""
    many = next((key for key in _MANY if key in box), None)
    given = box[many] if many else box.get("from", [])
    return [given] if isinstance(given, str) else list(given)


def _read(box: JsonObject, inputs: list[str]) -> None:
    many = next((key for key in _MANY if key in box), None)
    box[many or "from"] = inputs if many or len(inputs) != 1 else inputs[0]


def _arrow(boxes: JsonObject, step: JsonMapping) -> tuple[str, str, int]:
    wanted = str(step.get("arrow"))
    for head, box in boxes.items():
        for index, tail in enumerate(inputs_of(box)):
            if f"{tail}:{head}:{index}" == wanted:
                return tail, head, index
    raise UnknownNameError(f"no arrow '{wanted}'", expected="tail:head:index")


def _put_before(boxes: JsonObject, head: str, name: str, box: JsonObject) -> None:
    """A network reads best in the order in which tuples flow."""
    items = list(boxes.items())
    boxes.clear()
    for key, value in items:
        if key == head:
            boxes[name] = box
        boxes[key] = value


def _free(boxes: JsonObject, step: JsonMapping) -> str:
    name = str(step.get("name") or "")
    if not name or name in boxes:
        fault = f"'{name}' is there already" if name else "no name"
        raise RefusedChangeError("a new box needs a name of its own", found=fault)
    return name


def _known(boxes: JsonObject, name: str) -> str:
    if name not in boxes:
        raise UnknownNameError(f"no box '{name}'", hint=did_you_mean(name, boxes))
    return name


def _box(step: JsonMapping) -> JsonObject:
    box = step.get("box")
    if not isinstance(box, dict) or not box:
        raise RefusedChangeError("a step without a box", expected='for example {"filter": "spd < 9"}')
    return dict(box)


def python_text(text: str) -> str:
    r"""A Python file with the same network; `penstock run file.py` takes it.

    >>> names = {}
    >>> exec(python_text("network: n\nboxes:\n  a: {source: {rate: 5}}\n"), names)
    >>> list(names["network"].nodes)
    ['a']
    """
    lines = "".join(f"    {line!r}\n" for line in text.splitlines(keepends=True))
    return (
        '"""A network that was saved from the console."""\n\n'
        "import penstock as ps\n\n"
        f"network = ps.from_yaml(\n{lines})\n"
    )
