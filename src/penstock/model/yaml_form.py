"""The text form of a network: the same network in YAML, there and back without loss.

Each box is a mapping whose first key is its kind with its main argument, as in the Python call:

    network: traffic
    boxes:
      cars:
        source: {csv: in/, schema: 'time TIMESTAMP, vid INT, spd INT'}
        timestamp: time
      slow:
        filter: spd < 40
        from: cars
      jams:
        output: {parquet: out/jams}
        from: slow

User functions are written 'module:function'. What lives only in this process (lists of rows, lambdas) has no text.
"""

from __future__ import annotations

from pathlib import Path

from penstock.model.network import Network
from penstock.model.yaml_read import read_network
from penstock.model.yaml_write import network_text


def to_yaml(network: Network) -> str:
    """The network as YAML text.

    >>> import penstock as ps
    >>> net = ps.Network("n")
    >>> end = net.output("all", net.source("ticks", ps.rate(5)).filter("value % 2 = 0"), to=ps.console())
    >>> print(to_yaml(net), end="")
    network: n
    boxes:
      ticks:
        source: {rate: 5}
      filter_1:
        filter: value % 2 = 0
        from: ticks
      all:
        output: {console: 20}
        from: filter_1
    >>> from_yaml(to_yaml(net)) == net
    True
    """
    return network_text(network)


def from_yaml(source: str | Path) -> Network:
    """Read a network from YAML: a text of more than one line, or the path of a file. Errors name file and line."""
    if isinstance(source, str) and "\n" in source:
        return read_network(source, "<yaml>")
    return read_network(Path(source).read_text(encoding="utf-8"), str(source))
