"""Spark's own view of our queries: what each micro-batch took around the train, from trigger to commit.

PySpark turns each progress event into Python objects value by value, some hundred calls between JVM and
Python. In a driver whose threads are busy every one of them waits for its turn: measured at four trains a
second, 0.2 of a core for nothing, and a queue of events that grows until Spark drops them. So this listener
takes the event as one text.
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

PREFIX = "penstock-"


class TriggerListener(StreamingQueryListener):
    """Keeps for each of our sub-networks the seconds of its last trigger that were not the train's own."""

    def __init__(self, trigger: dict[str, float]) -> None:
        self._trigger = trigger

    def take(self, progress: dict[str, Any]) -> None:
        """One progress event, as Spark's JSON has it."""
        name, took = progress.get("name") or "", progress["durationMs"]
        if name.startswith(PREFIX) and "addBatch" in took:
            around = took.get("triggerExecution", 0) - took["addBatch"]
            self._trigger[name.removeprefix(PREFIX)] = around / 1000

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """The plain way in, should Spark call it."""
        self.take(json.loads(event.progress.json))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        pass

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        pass

    @property
    def _jlistener(self) -> Any:
        """What `addListener` hands to the JVM."""
        if not hasattr(self, "_wrapped"):
            jvm = SparkContext._jvm
            assert jvm is not None
            self._wrapped = jvm.PythonStreamingQueryListenerWrapper(_Unconverted(self))
        return self._wrapped


class _Unconverted:
    """The JVM's interface of a listener, without the conversion of events."""

    def __init__(self, listener: TriggerListener) -> None:
        self._listener = listener

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._listener.take(json.loads(event.progress().json()))

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass

    class Java:
        """What py4j looks for."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
