"""Windows, latches and resampling that must be refused."""

from __future__ import annotations

import penstock as ps
from model import sample_functions
from model.wrong_networks.cases import cars, case
from penstock.model.boxes import Latch
from penstock.model.writing.network import Network


@case
def window_without_timestamp():
    cars(timestamp=None).tumble("1 minute", n="count(*)")


@case
def window_length():
    cars().tumble("0 seconds", n="count(*)")


@case
def window_no_duration():
    cars().tumble("a minute", n="count(*)")


@case
def window_without_aggregates():
    cars().tumble("1 minute")


@case
def window_stamp():
    cars().tumble("1 minute", n="count(*)", stamp="last")


@case
def aggregate_unknown_column():
    cars().group_by("seg").tumble("1 minute", speed="avg(speed)")


@case
def aggregate_bare_column():
    cars().group_by("seg").tumble("1 minute", speed="spd")


@case
def aggregate_named_as_key():
    cars().group_by("seg").tumble("1 minute", seg="count(*)")


@case
def window_time_of_tuples():
    cars().tumble("100 tuples", start="window_start()")


@case
def slide_mixed():
    cars().slide("1 minute", every="10 tuples", n="count(*)")


@case
def window_after_unbounded_lag():
    cars().group_by("vid").tumble("10 tuples", speed="avg(spd)").tumble("1 minute", n="count(*)")


@case
def join_after_unbounded_lag():
    stream = cars()
    stream.join(stream.group_by("vid").tumble("10 tuples", speed="avg(spd)"), on="vid", within="1 minute")


@case
def window_function_without_produces():
    cars().tumble("1 minute", function=sample_functions.one)


@case
def latch_function_without_produces():
    cars().group_by("vid").latch(function=sample_functions.two, state="n BIGINT")


@case
def latch_function_arity():
    cars().latch(function=sample_functions.one, produces="vid INT")


@case
def latch_state_repeats_key():
    cars().group_by("vid").latch(function=sample_functions.two, state="vid INT", produces="vid INT")


@case
def latch_timestamp_type():
    cars().latch(function=sample_functions.two, produces="time STRING")


@case
def latch_without_size():
    cars().latch(best="max(spd)")


@case
def latch_function_with_size():
    cars().latch("1 minute", function=sample_functions.two, produces="vid INT")


@case
def latch_state_without_function():
    cars().latch("1 minute", state="n BIGINT", best="max(spd)")


@case
def latch_inputs_differ():
    net = ps.Network("n")
    more = cars(net, "more", "time TIMESTAMP, vid STRING")
    ps.latch([cars(net), more], function=sample_functions.two, produces="vid INT")


@case
def latch_without_timestamp():
    Network.of(
        "n",
        [cars(timestamp=None).node, Latch(name="best", inputs=("cars",), aggregates=(("n", "count(*)"),))],
    )


@case
def resample_text():
    cars().resample("1 second", columns=["plate"])


@case
def resample_key():
    cars().group_by("seg").resample("1 second", columns=["seg"])


@case
def resample_nothing():
    cars().resample("1 second", columns=[])
