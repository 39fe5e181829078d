"""Arguments of a wrong kind."""

from __future__ import annotations

import penstock as ps
from model import sample_functions
from model.wrong_networks.cases import CARS, cars, case


@case
def argument_map_number():
    cars().map(x=1)


@case
def argument_map_no_names():
    cars().map(["vid"])


@case
def argument_select_number():
    cars().select("time", 5)


@case
def argument_aggregate_number():
    cars().tumble("1 minute", n=1)


@case
def argument_group_by_list():
    cars().group_by(["vid"])


@case
def argument_group_by_twice():
    cars().group_by("vid", "vid")


@case
def argument_source_text():
    ps.Network("n").source("s", "in/")


@case
def argument_source_sink():
    ps.Network("n").source("s", ps.memory())


@case
def argument_source_schema_number():
    ps.csv("in/", 5)


@case
def argument_path_number():
    ps.csv(5, CARS)


@case
def argument_rate_zero():
    ps.rate(0)


@case
def argument_rows_number():
    ps.rows(5, "x INT")


@case
def argument_callback_text():
    ps.callback("f")


@case
def argument_console_negative():
    ps.console(-1)


@case
def argument_to_text():
    cars().output("jams", to="out/jams")


@case
def argument_to_source():
    cars().output("jams", to=ps.rate(3))


@case
def argument_output_of_a_name():
    cars().network.output("jams", "cars", to=ps.console())


@case
def argument_union_with_a_name():
    cars().union("more")


@case
def argument_union_of_names():
    ps.union("cars", "more")


@case
def argument_keep_none():
    cars().connection_point("kept", keep=None)


@case
def argument_key_number():
    cars().connection_point("kept", key=5)


@case
def argument_window_infinite():
    cars().tumble(float("inf"), n="count(*)")


@case
def argument_drop_text():
    cars().drop("half")


@case
def argument_drop_seed():
    cars().drop(0.5, seed="x")


@case
def argument_reads_number():
    cars().filter(sample_functions.one, reads=5)


@case
def argument_produces_number():
    cars().apply(sample_functions.one, produces=5)


@case
def argument_join_on_number():
    stream = cars()
    stream.join(stream, on=[("vid", "vid"), 5], within="1 minute")


@case
def argument_join_within_three():
    stream = cars()
    stream.join(stream, on="vid", within=(1, 2, 3))


@case
def argument_join_servers_text():
    stream = cars()
    stream.join(stream, on="vid", within=1, distribution="diffused", servers="four")


@case
def argument_join_memory_text():
    stream = cars()
    stream.join(stream, on="vid", within=1, distribution="diffused", memory="1 GB")


@case
def argument_whole_text():
    ps.Network("n").source("cars", ps.csv("in/", CARS), timestamp="time", whole="yes")


@case
def argument_name_number():
    ps.Network("n").source(5, ps.csv("in/", CARS))


@case
def argument_network_without_name():
    ps.Network("")
