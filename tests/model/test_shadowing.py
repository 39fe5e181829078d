"""No argument of a box hides a column: whoever means a column gets it, or a sentence."""

from __future__ import annotations

import inspect

import pytest

import penstock as ps
from penstock.model.errors import PenstockError
from penstock.model.writing.stream import Stream

SCHEMA = "time TIMESTAMP, k INT, v INT, name STRING"
FIRST = {"tumble": ("1 minute",), "slide": ("1 minute",), "latch": ("1 minute",)}
NEEDED = {"slide": {"every": "10 seconds"}}


def stream():
    net = ps.Network("columns")
    return net.source("cars", ps.csv("in", SCHEMA), timestamp="time")


def takes_columns(method):
    """The keyword arguments of this method are columns and their expressions."""
    last = list(inspect.signature(method).parameters.values())[-1]
    return last.kind is inspect.Parameter.VAR_KEYWORD and last.annotation == "str"


BOXES = [name for name, method in inspect.getmembers(Stream, inspect.isfunction) if takes_columns(method)]
OPTIONS = [
    (name, option.name)
    for name in BOXES
    for option in inspect.signature(getattr(Stream, name)).parameters.values()
    if option.kind is inspect.Parameter.KEYWORD_ONLY
]


def test_the_boxes_are_found():
    assert BOXES == ["latch", "map", "select", "slide", "tumble"]
    assert len(OPTIONS) > 15


@pytest.mark.parametrize(("box", "option"), OPTIONS)
@pytest.mark.parametrize("text", ["v", "max(v)", "v - 1", "upper(name)", "1"])
def test_an_option_written_as_a_column_is_refused(box, option, text):
    options = {**NEEDED.get(box, {}), "n": "count(*)" if box in FIRST else "v", option: text}
    with pytest.raises(PenstockError):
        getattr(stream(), box)(*FIRST.get(box, ()), **options)


@pytest.mark.parametrize(("box", "option"), OPTIONS)
def test_a_column_called_like_an_option_is_written_in_a_dict(box, option):
    columns = {option: "max(v)" if box in FIRST else "v"}
    written = getattr(stream(), box)(*FIRST.get(box, ()), columns, **NEEDED.get(box, {}))
    assert written.schema.type_of(option) == "INT"
    again = ps.from_yaml(ps.to_yaml(written.network))
    assert again.types[written.name] == written.type


def test_the_column_called_name():
    with pytest.raises(
        PenstockError, match=r"select\(name='name'\) could name the box or a column"
    ) as caught:
        stream().select(id="k", name="name")
    assert '.select({"name": "name"})' in str(caught.value)
    assert stream().select("name", "k").schema.names == ("name", "k")
    chosen = stream().select({"k": "k", "name": "name"}, name="chosen")
    assert (chosen.name, chosen.schema.names) == ("chosen", ("k", "name"))
    assert stream().select("k", v="v").named("v").name == "v"


@pytest.mark.parametrize(
    "write",
    [
        lambda s: s.map({"a": "1"}, a="2"),
        lambda s: s.select("k", "v", "k"),
        lambda s: s.select("k", k="v"),
        lambda s: s.select("k", {"k": "v"}),
        lambda s: s.tumble("1 minute", {"n": "count(*)"}, n="max(v)"),
    ],
)
def test_a_column_twice_is_refused(write):
    with pytest.raises(PenstockError, match="is given twice"):
        write(stream())


@pytest.mark.parametrize("part", ["reads", "produces"])
def test_what_belongs_to_a_function_needs_one(part):
    given = {"reads": "v", "produces": "x INT"}[part]
    with pytest.raises(PenstockError, match=f"'{part}' without a function"):
        stream().tumble("1 minute", n="count(*)", **{part: given})
    with pytest.raises(PenstockError, match="'reads' without a function"):
        stream().filter("v > 1", reads="v")
