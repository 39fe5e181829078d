"""Changing a running network: attach, detach, replace sub-networks (Aurora, Sect. 2.2, 4.1; A30, A42)."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.model.errors import NetworkError, PenstockError, caller
from penstock.model.formats.description import SinkFormat
from penstock.model.qos import QoS
from penstock.model.writing.network import Network
from penstock.model.writing.stream import Stream
from penstock.rewrite.check import check
from penstock.rewrite.forms import Form
from penstock.rewrite.settling import stateful
from penstock.rewrite.subnetworks import SubNetwork, at_point, split
from penstock.runtime.attached_views import (
    at_free_names,
    delete_point,
    must_not_be_read,
    with_views,
    without_view,
)
from penstock.runtime.box_facts import same
from penstock.runtime.checkpoint_identity import (
    claim,
    claim_attached,
    forget_subnetwork,
    known_subnetworks,
    settled,
)
from penstock.runtime.running_queries import Prepare, RunningQueries, RunSettings
from penstock.store.crash import crash_point

_LEASE = 60.0  # seconds that an attached query's claim on history outlives its process
_PATIENCE = 60.0  # seconds between two words about a train that is waited for
_LOG = logging.getLogger("penstock")


class Attaching(RunningQueries):
    """The part of a runtime that changes which sub-networks run."""

    def __init__(
        self, network: Network, checkpoint: Path, settings: RunSettings, *, once: bool, close: bool
    ) -> None:
        super().__init__(network, checkpoint, settings, once=once, close=close)
        self._attached: dict[str, SubNetwork] = {}
        self.first_form: Callable[[SubNetwork], Form | None] | None = None  # of queries that are attached

    def attach(
        self,
        name: str,
        point: str,
        build: Callable[[Stream], Stream],
        *,
        to: SinkFormat,
        qos: QoS | None = None,
        resume: bool = False,
    ) -> SubnetworkQuery:
        """Start an ad-hoc query at a connection point: first all that is retained, then new tuples (A30).

        It runs until it is detached. Its boxes carry its name: box `slow` of query `jams` is `jams_slow` in
        `status()` and in dead letters. It may join other points:
        `lambda s: s.join(s.network.stream("other"), on="k", within="1 minute")`.

        With `resume` it continues where a query of this name was when the runtime last stopped.
        """
        with self._lock:
            self._must_be_free(name)
            sub = at_free_names(at_point(self.network, point, name, build, to=to, qos=qos), self._names())
            self.must_fit(sub.network, [sub])
            return self._attach(sub, point, resume=resume)

    def attach_view(
        self,
        name: str,
        point: str,
        build: Callable[[Stream], Stream],
        *,
        keep: str = "2 hours",
        qos: QoS | None = None,
        resume: bool = False,
    ) -> SubnetworkQuery:
        """Start a view at a connection point (A28). It is always up to date, and queries can attach to it."""
        with self._lock:
            self._must_be_free(name)
            sub = at_point(self.network, point, name, lambda s: build(s).view(name, keep=keep, qos=qos))
            sub = at_free_names(sub, self._names())
            grown = with_views(self.network, {name: sub})
            self.must_fit(grown, [sub])
            query = self._attach(sub, point, resume=resume)
            self.network = grown
            return query

    @property
    def written(self) -> Network:
        """The network without the views that are attached to it."""
        network = self.network
        for view in self._attached.values():
            network = without_view(network, view) if view.points else network
        return network

    def _names(self) -> set[str]:
        """The names of all boxes, sources, points and outputs."""
        return {*self.network.nodes, *(name for sub in self._attached.values() for name in sub.network.nodes)}

    def _attach(self, sub: SubNetwork, point: str, *, resume: bool) -> SubnetworkQuery:
        records = self.running_records()
        check(sub.network)
        if not resume:
            self._delete(sub)
            records.forget(sub)  # what a query of this name did before is not its doing
            form = None if self.first_form is None else self.first_form(sub)
            if form is not None:
                self.forms.keep(sub, form)
        claim_attached(self.checkpoint / "queries" / sub.name, sub, self.box_facts((sub,)))
        self._attached[sub.name] = sub
        query = self.begin(sub, lease=_LEASE)
        records.event("attach", sub.name, point=point, inputs=list(sub.inputs), resume=resume)
        return query

    def attach_subnetwork(
        self, sub: SubNetwork, *, lease: float | None = None, prepare: Prepare | None = None, **given: Any
    ) -> SubnetworkQuery:
        """Run one more sub-network beside the others, for higher layers; `detach` ends it.

        `prepare` is called before the first train. `given` passes trains or inputs of its own kind, see
        SubnetworkQuery.
        """
        with self._lock:
            self._must_be_free(sub.name)
            records = self.running_records()
            query = self.begin(sub, lease=lease, prepare=prepare, **given)
            records.event("attach", sub.name, inputs=list(sub.inputs))
            return query

    def _must_be_free(self, name: str) -> None:
        if name in self.queries or name in self.network.nodes or name in known_subnetworks(self.checkpoint):
            hint = "detach it first, or choose another name"
            raise NetworkError(f"the name '{name}' is taken", where=caller(), hint=hint)

    def detach(self, name: str) -> None:
        """End an ad-hoc query, a view or an output without disturbing the others. Its name becomes free."""
        with self._lock:
            query = self.running(name)
            self._must_not_ask_itself(name)
            must_not_be_read(query.sub, [other.sub for other in self.queries.values()])
            end(query)
            query.release()
            self.forget(name)
            self._delete(query.sub)
            forget_subnetwork(self.checkpoint, name)
            attached = self._attached.pop(name, None)
            if attached is not None:
                self.running_records().forget(attached)
                if attached.points:
                    self.network = without_view(self.network, attached)
            self.running_records().event("detach", name)

    def _delete(self, sub: SubNetwork) -> None:
        """Delete what a sub-network left in the checkpoint: position, state, points that only it wrote."""
        shutil.rmtree(self.checkpoint / "queries" / sub.name, ignore_errors=True)
        for point in sub.points:
            delete_point(self.checkpoint, point)

    def replace(self, network: Network, *, fresh_state: bool = False) -> dict[str, float]:
        """Change sub-networks while the others run: hold, drain, change, release (A42).

        Returns the blip of each one in seconds. A changed stateful box needs `fresh_state=True`: it starts
        anew from the current position of its input.
        """
        with self._lock:
            check(network)
            subs = settled(self.checkpoint, split(network), moved=fresh_state)
            grown = with_views(network, self._attached)
            changed = [sub for sub in subs if not self.runs_unchanged(sub)]
            self.must_fit(grown, changed)
            gone = [sub for sub in self.subs if sub.name not in {other.name for other in subs}]
            gone = [sub for sub in gone if sub.name in self.queries]  # not what a failed change left out
            self._must_not_ask_itself(*(sub.name for sub in (*changed, *gone)))
            for sub in changed if fresh_state else ():
                self.forms.forget(sub.name)
            claim(self.checkpoint, network, subs, self.box_facts(subs), fresh=fresh_state)
            for sub in reversed(gone):  # stop readers before what they read
                self.detach(sub.name)
            self.network, self.subs = grown, subs
            blips = {sub.name: self._swap(sub, fresh_state=fresh_state) for sub in changed}
            self.running_records().network(network, subs)
            return blips

    def rewrite(self, name: str, form: Form) -> float:
        """Run a sub-network in another form, with its state; the others go on. Returns the blip in seconds.

        The network as written stays: `network`, `status()` and the catalog speak of its boxes.
        """
        with self._lock:
            old = self.running(name)
            self._must_not_ask_itself(name)
            written = replace(old.sub, network=old.sub.as_written, written=None)
            if form.rewritten:
                form = replace(form, in_use=form.in_use | stateful(written.network))
            if self._facts((form.of(written),)) != self._facts((old.sub,)):
                raise PenstockError(f"'{name}' cannot run in this form with the state that it has")
            started = time.monotonic()
            with self._followed(old):
                end(old)
                # Only now: trains before this one belong to the form before.
                self.forms.keep(written, replace(form, newest=_newest(old)))
                crash_point("form-kept")
                query = self.begin(written, lease=_LEASE if name in self._attached else None)
            query.wait_ready()
            blip = time.monotonic() - started
            self.running_records().event("rewrite", name, blip=round(blip, 3))
            return blip

    def _must_not_ask_itself(self, *names: str) -> None:
        """Refuse to end a query from within its train, which would wait for its own end."""
        name = getattr(self._telling, "name", None)
        if name in names:
            problem = (
                f"'{name}' cannot be ended or changed by what its own train calls: it would wait for itself"
            )
            raise PenstockError(problem, hint="let another thread do it")

    def runs_unchanged(self, sub: SubNetwork) -> bool:
        """Whether exactly this sub-network runs, in whatever form; one that has failed does not."""
        query = self.queries.get(sub.name)
        if query is None or query.failure is not None:
            return False
        return same(query.sub.as_written, sub.network)

    def _swap(self, sub: SubNetwork, *, fresh_state: bool) -> float:
        """Stop a sub-network and start the new one in its place; returns the seconds between."""
        started = time.monotonic()
        old = self.queries.get(sub.name)  # it stays until the new one is there: its readers wait for it
        with self._followed(old):
            if old is not None:
                end(old)
                if fresh_state:
                    old.forget_state()
            query = self.begin(sub)
        query.wait_ready()
        blip = time.monotonic() - started
        self.running_records().event("replace", sub.name, blip=round(blip, 3))
        return blip

    @contextmanager
    def _followed(self, old: SubnetworkQuery | None) -> Iterator[None]:
        """In the block a query ends and another one takes its place.

        If none does, the old one stays listed for its readers. It must not look as if it ran: a run would
        wait for it for ever, and going back to it would start nothing.
        """
        try:
            yield
        except BaseException as error:
            if old is not None and self.queries.get(old.sub.name) is old:
                old.failure = error
            raise


def end(query: SubnetworkQuery) -> None:
    """Stop a query, however long its train takes: before, nobody may take its place or delete its folder.

    Both would run the same train on the same chain, and nothing would tell one from the other.
    """
    while not query.drain(_PATIENCE):
        _LOG.warning("sub-network '%s': waiting for its train %d", query.sub.name, query.last)
    query.stop()


def _newest(query: SubnetworkQuery) -> int | None:
    """The time of the newest tuple that a sub-network has seen, in microseconds."""
    commit = query.log.commit(query.log.last_commit())
    return max(commit.newest.values(), default=None) if commit is not None else None
