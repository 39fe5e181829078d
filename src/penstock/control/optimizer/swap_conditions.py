"""Whether a network has time to be optimized: nothing is shed, no output is out of its good zone (A47)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.control.overload import overload_now
from penstock.control.utility import in_good_zone
from penstock.model.writing.network import Network
from penstock.runtime.runtime import Runtime
from penstock.store.catalog.catalog import Catalog

if TYPE_CHECKING:  # whoever has no PySpark is told so by the runtime, in one sentence
    from penstock.engine.spark.trains.query import SubnetworkQuery

_SECONDS = 10  # of delays that decide


def reason_to_wait(runtime: Runtime, catalog: Catalog, now: float) -> str | None:
    """Why no form may be swapped now; None if nothing speaks against it."""
    for query in list(runtime.queries.values()):
        if _sheds(query):
            return f"tuples of '{query.sub.name}' are shed"
    for behind in overload_now(catalog, now):
        return str(behind)
    return _out_of_zone(runtime.network, catalog, now)


def _sheds(query: SubnetworkQuery) -> bool:
    """Whether tuples are shed, or are missing in windows that are still open.

    Windows that a valve has chosen stay chosen after it has opened. The last ticket knows them, by the places
    of the form that it was written for.
    """
    ticket = query.log.ticket(query.last)
    return bool(query.steering.valves or (ticket is not None and ticket.valves))


def _out_of_zone(network: Network, catalog: Catalog, now: float) -> str | None:
    seconds = catalog.output_seconds(_SECONDS)
    for name, node in network.nodes.items():
        qos = getattr(node, "qos", None)
        recent = [second for second in seconds.get(name, ()) if second.second > now - _SECONDS]
        if qos is not None and any(in_good_zone(qos, second) is False for second in recent):
            return f"'{name}' is out of its good zone"
    return None
