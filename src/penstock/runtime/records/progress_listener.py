"""Spark's own view of our queries: what each micro-batch took around the train, from trigger to commit.

PySpark converts each progress event into Python objects value by value, with some hundred calls between JVM
and Python. In a driver with busy threads each call waits for its turn. Measured at four trains a second, this
wasted 0.2 of a core, and the queue of events grew until Spark dropped them. So this listener takes the event
as one text.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark import SparkContext
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from penstock.model.json_types import JsonObject

PREFIX = "penstock-"


class TriggerListener(StreamingQueryListener):
    """Keeps, for each of our sub-networks, the seconds that its last trigger took beyond the train."""

    def __init__(self, trigger: dict[str, float]) -> None:
        self._trigger = trigger

    def take(self, progress: JsonObject) -> None:
        """Take one progress event in Spark's JSON form."""
        name, took = progress.get("name") or "", progress["durationMs"]
        if name.startswith(PREFIX) and "addBatch" in took:
            around = took.get("triggerExecution", 0) - took["addBatch"]
            self._trigger[name.removeprefix(PREFIX)] = around / 1000

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Take an event the usual way, should Spark call it."""
        self.take(json.loads(event.progress.json))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        pass

    @property
    def _jlistener(self) -> Any:
        """The object that `addListener` hands to the JVM."""
        if not hasattr(self, "_wrapped"):
            jvm = SparkContext._jvm
            assert jvm is not None
            self._wrapped = jvm.PythonStreamingQueryListenerWrapper(_Unconverted(self))
        return self._wrapped


class _Unconverted:
    """The JVM's listener interface, without converting events."""

    def __init__(self, listener: TriggerListener) -> None:
        self._listener = listener

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self._listener.take(json.loads(event.progress().json()))

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        pass

    class Java:
        """The attribute that py4j looks for."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
