"""Expressions and functions that must be refused."""

from __future__ import annotations

from model import sample_functions
from model.wrong_networks.cases import cars, case


@case
def column_unknown():
    cars().filter("sdp < 40")


@case
def predicate_not_boolean():
    cars().filter("spd + 1")


@case
def predicate_does_not_parse():
    cars().filter("spd <")


@case
def types_do_not_fit():
    cars().map(x="plate + time")


@case
def function_unknown_in_expression():
    cars().map(x="sqroot(spd)")


@case
def filter_reads_unknown():
    cars().filter(sample_functions.one, reads="speed")


@case
def filter_function_arity():
    cars().filter(sample_functions.two)


@case
def map_empty():
    cars().map()


@case
def map_overwrites_timestamp():
    cars().map(time="time + interval 1 hour")


@case
def map_loses_the_key():
    cars().group_by("seg").select("vid", "spd")


@case
def map_backtick_in_name():
    cars().map({"a`b": "spd"})


@case
def map_hidden_name():
    cars().map(_ts="spd")


@case
def apply_without_produces():
    cars().apply(sample_functions.one, produces="")


@case
def function_not_found():
    cars().apply("model.sample_functions:won", produces="x INT")


@case
def drop_rate():
    cars().drop(25)
