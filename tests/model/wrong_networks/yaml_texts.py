"""Networks that cannot be written as YAML, and texts that cannot be read."""

from __future__ import annotations

import penstock as ps
from model.wrong_networks.cases import cars, case

HEAD = (
    "network: n\nboxes:\n  cars:\n"
    "    source: {csv: in/, schema: 'time TIMESTAMP, spd INT'}\n    timestamp: time\n"
)


@case
def yaml_option_misspelt():
    ps.from_yaml(
        "network: n\nboxes:\n  s:\n"
        "    source:\n      csv: in/\n      schema: x INT\n      options: {heder: true}\n"
    )


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
def yaml_function_in_a_mapping():
    ps.from_yaml(HEAD + "  out:\n    from: cars\n    apply: {function: 'm:f'}\n    produces: x INT\n")


@case
def yaml_not_a_mapping():
    ps.from_yaml(HEAD + "  out: filter\n")


@case
def yaml_rate_zero():
    ps.from_yaml("network: n\nboxes:\n  s:\n    source: {rate: 0}\n")


@case
def yaml_binary():
    ps.from_yaml("network: n\nboxes:\n  s: \0\n")


@case
def yaml_shed_no_grain():
    ps.from_yaml(
        "network: n\nboxes:\n  s:\n    source: {rate: 5}\n  f:\n    filter: value > 1\n    from: s\n"
        "    shed: often\n"
    )
