"""Networks that must be refused, one mistake each; what they say stands in golden/<function name>.txt."""

from __future__ import annotations

from collections.abc import Callable

import penstock as ps
from model import sample_functions
from penstock.model.boxes import Filter, Latch, Output, Union
from penstock.model.writing.network import Network
from penstock.rewrite.check import check

CASES: dict[str, Callable[[], object]] = {}
CARS = "time TIMESTAMP, vid INT, spd INT, seg INT, plate STRING"


def case(function):
    CASES[function.__name__] = function
    return function


def cars(net=None, name="cars", schema=CARS, timestamp="time"):
    return (net or ps.Network("traffic")).source(name, ps.csv("in/", schema), timestamp=timestamp)


# --- sources ---


@case
def source_without_schema():
    ps.Network("n").source("cars", ps.csv("in/"), timestamp="time")


@case
def source_schema_misspelt():
    ps.csv("in/", "time TIMESTAMP, vid INTT")


@case
def source_timestamp_unknown():
    cars(timestamp="tme")


@case
def source_timestamp_no_time():
    cars(timestamp="vid")


@case
def source_lateness_no_duration():
    ps.Network("n").source("cars", ps.csv("in/", CARS), timestamp="time", lateness="10 parsecs")


@case
def columns_differ_in_case():
    cars(schema="time TIMESTAMP, speed INT, Speed INT")


@case
def option_misspelt():
    ps.csv("in/", CARS, heder=True)


@case
def option_of_spark_only():
    ps.csv("in/", CARS, escape="x")


@case
def option_no_flag():
    ps.csv("in/", CARS, header="yes")


@case
def option_two_characters():
    ps.csv("in/", CARS, sep="||")


@case
def option_pattern_unknown_letter():
    ps.csv("in/", CARS, timestampFormat="EEE dd/MM/yyyy")


@case
def option_pattern_open_quote():
    ps.json("in/", CARS, timestampFormat="yyyy'T")


@case
def option_pattern_of_an_output():
    cars().output("out", to=ps.csv("out/", timestampFormat="yyyy"))


@case
def option_compression_of_a_source():
    ps.Network("n").source("cars", ps.parquet("in/", CARS, compression="zstd"))


@case
def option_compression_unknown():
    cars().output("out", to=ps.parquet("out/", compression="zst"))


@case
def yaml_option_misspelt():
    ps.from_yaml(
        "network: n\nboxes:\n  s:\n"
        "    source:\n      csv: in/\n      schema: x INT\n      options: {heder: true}\n"
    )


# --- names and shape ---


@case
def name_twice():
    net = ps.Network("n")
    cars(net)
    cars(net)


@case
def name_taken_by_named():
    stream = cars()
    stream.filter("spd < 40", name="slow")
    stream.filter("spd > 90").named("slow")


@case
def point_name_no_table():
    cars().connection_point("last minutes")


@case
def group_name_with_slash():
    with ps.Network("n").group("a/b"):
        pass


@case
def input_unknown():
    Network.of("n", [Filter(name="slow", inputs=("casr",), predicate="true"), cars().node])


@case
def loop():
    boxes = [
        Filter(name="b", inputs=("a",), predicate="true"),
        Filter(name="c", inputs=("b",), predicate="true"),
    ]
    Network.of("n", [Union(name="a", inputs=("c", "cars")), *boxes, cars().node])


@case
def reads_from_an_output():
    stream = cars()
    stream.network.output("all", stream, to=ps.console()).filter("spd < 40")


@case
def other_network():
    cars().union(cars(ps.Network("elsewhere")))


@case
def stream_unknown():
    cars().network.stream("carz")


@case
def inputs_too_few():
    Network.of("n", [cars().node, Union(name="both", inputs=("cars",))])


# --- expressions ---


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


# --- bringing streams together ---


@case
def union_of_different_columns():
    stream = cars()
    stream.union(stream.select("time", "vid", "spd"))


@case
def union_of_different_order():
    stream = cars()
    stream.select("time", "vid", "spd").union(stream.select("time", "spd", "vid"))


@case
def union_stamped_and_not():
    net = ps.Network("n")
    cars(net).union(cars(net, "more", timestamp=None))


@case
def union_grouped_differently():
    stream = cars()
    stream.group_by("vid").union(stream.group_by("seg"))


@case
def group_by_unknown():
    cars().group_by("segment")


@case
def group_by_nothing():
    cars().group_by()


@case
def group_by_timestamp():
    cars().group_by("time")


@case
def join_key_unknown():
    stream = cars()
    stream.join(stream, on=[("vid", "car")], within="1 minute")


@case
def join_key_types():
    stream = cars()
    stream.join(stream, on=[("vid", "plate")], within="1 minute")


@case
def join_without_timestamp():
    net = ps.Network("n")
    cars(net).join(cars(net, "more", timestamp=None), on="vid", within="1 minute")


@case
def join_predicate():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", where="spd_rigth > spd")


@case
def join_distribution_unknown():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", distribution="difused")


@case
def join_master_unknown():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", distribution="diffused", master="fastest")


@case
def join_servers():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", distribution="diffused", servers=0)


@case
def join_threshold():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", distribution="auto", threshold=70)


@case
def join_memory():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", distribution="diffused", memory=0)


@case
def join_full_without_memory():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", distribution="diffused", when_full="drop")


@case
def join_sample():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", distribution="diffused", sample=0)


@case
def join_hash_with_servers():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", servers=4, memory=10)


@case
def join_within_no_duration():
    stream = cars()
    stream.join(stream, on="vid", within="soon")


# --- windows and state ---


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


# --- ends ---


@case
def point_without_timestamp():
    cars(timestamp=None).connection_point("kept")


@case
def point_key_unknown():
    cars().connection_point("kept", key="segment")


@case
def point_keeps_nothing():
    cars().connection_point("kept", keep=0)


@case
def qos_not_normalised():
    stream = cars()
    stream.network.output("all", stream, to=ps.console(), qos={"delay": [(0, 1.0), (5, 2.0)]})


@case
def qos_column_unknown():
    stream = cars()
    qos = ps.QoS(delay=[(0, 1), (5, 0)], value=[(0, 0), (9, 1)], column="sped")
    stream.network.output("all", stream, to=ps.console(), qos=qos)


@case
def qos_column_no_number():
    qos = ps.QoS(delay=[(0, 1), (5, 0)], value=[(0, 0), (9, 1)], column="plate")
    cars().view("kept", qos=qos)


@case
def no_end():
    net = ps.Network("n")
    cars(net).filter("spd < 40")
    check(net)


@case
def points_differ_in_case():
    stream = cars()
    stream.connection_point("kept")
    stream.connection_point("Kept")
    check(stream.network)


@case
def outputs_share_a_directory():
    stream = cars()
    stream.output("a", to=ps.parquet("out"))
    stream.output("b", to=ps.json("out/"))
    check(stream.network)


@case
def output_feeds_a_source():
    stream = cars()
    stream.output("a", to=ps.csv("in"))
    check(stream.network)


# --- texts that cannot be written ---


@case
def yaml_of_a_lambda():
    stream = cars()
    stream.filter(lambda batch: batch)
    ps.to_yaml(stream.network)


@case
def yaml_of_rows():
    net = ps.Network("n")
    net.source("ticks", ps.rows([(1,)], "x INT"))
    ps.to_yaml(net)


# --- texts that cannot be read ---

HEAD = (
    "network: n\nboxes:\n  cars:\n"
    "    source: {csv: in/, schema: 'time TIMESTAMP, spd INT'}\n    timestamp: time\n"
)


@case
def yaml_syntax():
    ps.from_yaml("network: n\nboxes: [\n")


@case
def yaml_empty():
    ps.from_yaml("\n# nothing\n")


@case
def yaml_no_boxes():
    ps.from_yaml("network: n\nboxs: {}\n")


@case
def yaml_name_twice():
    ps.from_yaml(HEAD + "  cars:\n    source: {rate: 5}\n")


@case
def yaml_kind_unknown():
    ps.from_yaml(HEAD + "  slow:\n    fliter: spd < 40\n    from: cars\n")


@case
def yaml_key_unknown():
    ps.from_yaml(HEAD + "  slow:\n    filter: spd < 40\n    form: cars\n")


@case
def yaml_input_unknown():
    ps.from_yaml(HEAD + "  slow:\n    filter: spd < 40\n    from: car\n")


@case
def yaml_column_unknown():
    ps.from_yaml(HEAD + "\n\n  slow:\n    filter: sped < 40\n    from: cars\n")


@case
def yaml_loop():
    ps.from_yaml(HEAD + "  a:\n    union: [cars, b]\n  b:\n    filter: 'true'\n    from: a\n")


@case
def yaml_duration():
    ps.from_yaml(HEAD + "  n:\n    from: cars\n    tumble: 1 minuet\n    aggregates: {n: count(*)}\n")


@case
def yaml_number():
    ps.from_yaml(HEAD + "  n:\n    from: cars\n    drop: half\n")


@case
def yaml_format():
    ps.from_yaml(HEAD + "  out:\n    from: cars\n    output: {parket: out/}\n")


@case
def yaml_qos():
    ps.from_yaml(
        HEAD
        + "  out:\n    from: cars\n    output: console\n    qos:\n"
        + "      delay: [[0, 1], [5, 0]]\n      loss: [[0, 0], [50, 0.1], [100, 1]]\n"
    )


@case
def yaml_qos_point():
    ps.from_yaml(HEAD + "  out:\n    from: cars\n    output: console\n    qos:\n      delay: [[0, 1], [5]]\n")


@case
def yaml_function():
    ps.from_yaml(HEAD + "  out:\n    from: cars\n    apply: nowhere:f\n    produces: x INT\n")


@case
def yaml_not_a_mapping():
    ps.from_yaml(HEAD + "  out: filter\n")


@case
def output_two_inputs():
    Network.of("n", [cars().node, Output(name="o", inputs=("cars", "cars"), to=ps.console())])


@case
def qos_part_unknown():
    cars().output("all", to=ps.console(), qos={"delai": [(0, 1), (5, 0)]})


@case
def qos_without_delay():
    cars().output("all", to=ps.console(), qos={"loss": [(0, 0), (100, 1)]})


# --- arguments of a wrong kind ---


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
def argument_qos_number():
    cars().output("jams", to=ps.console(), qos=5)


@case
def argument_qos_graph_number():
    ps.QoS(delay=5)


@case
def argument_qos_three():
    ps.QoS(delay=[(0, 1, 2)])


@case
def argument_qos_text():
    ps.QoS(delay=[("a", 1)])


@case
def argument_qos_nan():
    ps.QoS(delay=[(0, 1), (float("nan"), 0)])


@case
def argument_qos_weight_nan():
    ps.QoS(delay=[(0, 1), (5, 0)], weight=float("nan"))


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


@case
def yaml_rate_zero():
    ps.from_yaml("network: n\nboxes:\n  s:\n    source: {rate: 0}\n")


@case
def yaml_binary():
    ps.from_yaml("network: n\nboxes:\n  s: \0\n")


@case
def shed_no_grain():
    cars().filter("spd < 40").shed("rows")


@case
def shed_windows_without_any():
    cars().filter("spd < 40").shed("windows")


@case
def shed_tuples_before_counts():
    cars().tumble("10 tuples", n="count(*)").shed("tuples")


@case
def shed_on_a_source():
    cars().shed("never")


@case
def shed_number():
    cars().filter("spd < 40").shed(5)


@case
def argument_qos_approximate_text():
    ps.QoS(delay=[(0, 1), (5, 0)], approximate="yes")


@case
def yaml_shed_no_grain():
    ps.from_yaml(
        "network: n\nboxes:\n  s:\n    source: {rate: 5}\n  f:\n    filter: value > 1\n    from: s\n"
        "    shed: often\n"
    )
