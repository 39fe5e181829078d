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

User functions are written 'module:function'. What lives only in this process (lists of rows, lambdas) has no
text.
"""

from __future__ import annotations

from pathlib import Path

from penstock.model.errors import NetworkError, Where
from penstock.model.text.yaml_read import read_network
from penstock.model.text.yaml_write import network_text
from penstock.model.writing.network import Network


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
    """Read a network from YAML: a text of more than one line, or the path of a file.

    Errors name file and line.
    """
    if isinstance(source, str) and "\n" in source:
        return read_network(source, "<yaml>")
    return read_network(_text(Path(source)), str(source))


def _text(path: Path) -> str:
    """The file's text, or what kept us from reading it; a file that is not there stays Python's own error."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        byte = f"byte 0x{error.object[error.start]:02x}"
        raise NetworkError(
            "not UTF-8",
            where=Where(str(path), line),
            found=byte,
            expected="a YAML text in UTF-8",
            hint="save the file as UTF-8",
        ) from None
    except IsADirectoryError:
        raise NetworkError(
            "a directory",
            where=Where(str(path), 1),
            found="a directory",
            expected="a YAML file",
            hint="name the file in it",
        ) from None
