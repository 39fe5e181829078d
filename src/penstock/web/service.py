"""One console: what it looks at, what it may change, and who is told about it. Routes only call this."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TypeVar

from penstock.model.errors import PenstockError, did_you_mean
from penstock.model.json_types import JsonObject
from penstock.model.text.yaml_form import from_yaml
from penstock.runtime import Runtime
from penstock.web.act.bookmarks import Bookmarks
from penstock.web.act.difference import differences
from penstock.web.act.edits import Edits
from penstock.web.act.holds import Holds
from penstock.web.act.monitors import PageMonitors, point_tuples
from penstock.web.act.questions import Questions
from penstock.web.errors import LookingOnlyError, UnknownNameError, VersionMovedError
from penstock.web.events import Events
from penstock.web.look.network_json import arrow_id, network_json, topology_json
from penstock.web.look.road import is_recorded_road, is_road
from penstock.web.look.status_json import StatusLook, arrows_of
from penstock.web.look.watched import LOOKING_ONLY, Watched

_LOG = logging.getLogger("penstock.console")


T = TypeVar("T")


class ConsoleService:
    """The console of one network, without HTTP. All methods may be called from any thread."""

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.events = Events()
        self.statuses = StatusLook(watched, self.asked)
        self.bookmarks = Bookmarks(watched.checkpoint)
        self._changing = threading.RLock()
        runtime = watched.runtime
        self.monitors = PageMonitors(runtime, self.tell)
        self._holds = None if runtime is None else Holds(runtime, self.tell)
        self._questions = None if runtime is None else Questions(runtime, self.tell)
        self._edits = None if runtime is None else Edits(runtime)

    # -- looking

    def network(self, shut: Collection[str] = (), *, down: bool = False) -> JsonObject:
        """The network, its picture and its sub-networks. `shut`: groups to show as one box."""
        watched, network = self.watched, self.watched.network()
        text, homes = watched.text(), watched.homes()
        if network is not None:
            shown = network_json(network, text, homes, shut, down=down)
        else:
            topology = watched.catalog.topology(text.version)
            assert topology is not None  # a version has nodes
            shown = topology_json(watched.name(), topology, text, shut, down=down)
        return {**shown, "subnetworks": sorted(set(homes.values())), "linear_road": self.is_road()}

    def is_road(self) -> bool:
        """Whether the network is Linear Road's, which has a view of its own."""
        network = self.watched.network()
        if network is not None:
            return is_road(network)
        return is_recorded_road(self.watched.catalog.topology())

    def status(self) -> JsonObject:
        """The figures now."""
        return self.statuses.status()

    def asked(self) -> JsonObject:
        """Who holds, watches and asks what; nobody does where the network runs elsewhere."""
        return {
            "held": self._holds.held() if self._holds else [],
            "breakpoints": self._holds.breakpoints() if self._holds else [],
            "attached": self._questions.attached() if self._questions else [],
            "watching": self.monitors.watching(),
        }

    def tuples(self, arrow: str, condition: str, after: int, limit: int) -> JsonObject:
        """The last tuples on an arrow."""
        tail, _, _ = self.arrow(arrow)
        network = self.watched.network()
        if self.watched.runtime is None or (network is not None and tail in network.points):
            return point_tuples(self.watched.checkpoint, network, arrow, tail, condition, after)
        home = self.watched.homes().get(tail, "")
        return self.monitors.tuples(arrow, tail, home, condition, after, limit)

    def arrow(self, name: str) -> tuple[str, str, int]:
        """An arrow by its name, tail:head:index."""
        known = {arrow_id(*key): key for key in arrows_of(self.watched)}
        if name not in known:
            raise UnknownNameError(f"no arrow '{name}'", hint=did_you_mean(name, known))
        return known[name]

    def versions(self) -> list[JsonObject]:
        """All versions, the newest first, with who made them."""
        catalog = self.watched.catalog
        edits = {event.detail.get("version"): event for event in catalog.events("edit", last=1000)}
        shown = []
        for each in reversed(catalog.networks()):
            event = edits.get(each.version)
            words = event.detail["words"] if event is not None else []
            by = event.detail["by"] if event is not None else None
            about = {"version": each.version, "time": each.time, "form": each.form}
            shown.append({**about, "by": by, "words": words})
        return shown

    def tick(self) -> None:
        """Once a second: let go what nobody holds, watches or reads any more."""
        self.monitors.expire()
        for part in (self._holds, self._questions):
            if part is not None:
                part.expire()

    def tell(self, name: str, body: JsonObject, key: str) -> None:
        """Send an event to the pages."""
        self.events.publish(name, body, key=key, keep=name == "held")

    def end(self) -> None:
        """Let go what clients hold: the server ends."""
        for part in (self._holds, self._questions):
            if part is not None and self.watched.state()[0] == "running":
                part.end()

    @property
    def holds(self) -> Holds:
        """Holds, steps and breakpoints."""
        return _here(self._holds)

    @property
    def questions(self) -> Questions:
        """Ad-hoc queries."""
        return _here(self._questions)

    @property
    def edits(self) -> Edits:
        """Edits of the network."""
        return _here(self._edits)

    # -- changing

    def running(self) -> Runtime:
        """The runtime, where this process has it."""
        runtime = self.watched.runtime
        if runtime is None:
            hint = "run it here: penstock run NET --console"
            raise LookingOnlyError(LOOKING_ONLY, hint=hint)
        state, error = self.watched.state()
        if state != "running":
            raise LookingOnlyError(f"the run has {state}", found=error, hint="start it again to change it")
        return runtime

    @contextmanager
    def changing(
        self, version: int, who: str, what: str, *, tell: bool = True, log: bool = True
    ) -> Iterator[Runtime]:
        """One change at a time, by a client that knows the current version. It is logged with its name."""
        with self._changing:
            runtime = self.running()
            now = self.watched.catalog.version()
            if version != now:
                raise VersionMovedError(sent=version, now=now, difference=self.difference(version, now))
            yield runtime
            if log:
                self.log(who, what)
            if tell:
                self.tell_network()

    def log(self, who: str, what: str) -> None:
        """Keep who changed what, with the run's other events."""
        by = who or "somebody here"
        _LOG.info("%s: %s", by, what)
        self.watched.catalog.record_event("console", what, by=by)

    def tell_network(self) -> None:
        """Tell pages that the network may have changed; they read it again."""
        self.events.publish("network", {"version": self.watched.catalog.version()}, keep=True)

    def difference(self, old: int, new: int) -> list[str]:
        """What changed between two versions, in words."""
        records = [self.watched.catalog.network(version) for version in (old, new)]
        if any(record is None for record in records):
            return [f"there is no version {old}; the network has version {new}"]
        try:
            before, after = (from_yaml(record.text) for record in records if record is not None)
            return differences(before, after) or ["nothing that a picture shows"]
        except (PenstockError, OSError):
            return [f"version {old} has become version {new}; one of them has no text form"]


def _here(part: T | None) -> T:
    if part is None:
        raise LookingOnlyError(LOOKING_ONLY, hint="run it here: penstock run NET --console")
    return part
