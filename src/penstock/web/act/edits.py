"""Edits of a running network (A40, A42): what one will cost, in words, before it is made; apply; undo."""

from __future__ import annotations

from dataclasses import dataclass, replace

import yaml

from penstock.connectors.loading import check_sources
from penstock.model.boxes import Output, Source
from penstock.model.errors import PenstockError
from penstock.model.json_types import JsonObject
from penstock.model.text.yaml_form import to_yaml
from penstock.model.text.yaml_read import read_network
from penstock.model.writing.network import Network
from penstock.rewrite.check import check
from penstock.rewrite.subnetworks import SubNetwork, split
from penstock.runtime import Runtime
from penstock.runtime.checkpoint_identity import must_fit, settled
from penstock.web.act.difference import differences
from penstock.web.act.named import must_name_nothing_new
from penstock.web.errors import EditingOffError, RefusedChangeError

_FILE = "<edit>"
_BLIPS = 5  # measured ones that an estimate is made of


@dataclass(frozen=True)
class Plan:
    """What an edit would do."""

    network: Network
    words: list[str]
    effects: list[str]
    subnetworks: list[JsonObject]
    needs_fresh_state: bool
    needs_new_checkpoint: str

    def plain(self) -> JsonObject:
        """For the page."""
        return {
            "ok": not self.needs_new_checkpoint,
            "yaml": to_yaml(self.network),
            "words": self.words,
            "effects": self.effects,
            "subnetworks": self.subnetworks,
            "needs_fresh_state": self.needs_fresh_state,
            "needs_new_checkpoint": self.needs_new_checkpoint or None,
            "error": None,
        }


class Edits:
    """Previews and applies edits of one runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._before: list[str] = []  # texts to go back to, the newest last

    def text(self) -> str:
        """The network as it runs; refused where it has no text."""
        try:
            return to_yaml(self._runtime.written)
        except PenstockError as error:
            raise EditingOffError(
                "this network cannot be edited as text",
                found=error.problem,
                hint="edit the file it came from",
            ) from None

    def preview(self, text: str) -> Plan:
        """What an edit would do; nothing changes."""
        old = self._runtime.written
        must_name_nothing_new(text, yaml.safe_load(self.text()))
        new = with_lists_of(old, read_network(text, _FILE))
        if new.name != old.name:
            raise RefusedChangeError(
                f"the network is called '{old.name}', not '{new.name}'", hint="a checkpoint has one network"
            )
        check(new)
        check_sources(n for n in new.nodes.values() if isinstance(n, Source) and n.name not in old.nodes)
        return self._plan(old, new)

    def _plan(self, old: Network, new: Network) -> Plan:
        runtime, fresh, impossible = self._runtime, False, ""
        try:
            subs = settled(runtime.checkpoint, split(new))
            must_fit(runtime.checkpoint, new, runtime.box_facts(subs))
        except PenstockError:
            fresh = True
        try:
            subs = settled(runtime.checkpoint, split(new), moved=fresh)
        except PenstockError as error:
            subs, impossible = split(new), error.problem
        changes = [self._change(sub) for sub in subs] + self._gone(subs)
        noted = [change for change in changes if change["change"] != "unchanged"]
        words = differences(old, new)
        return Plan(new, words, _effects(noted, impossible), changes, fresh, impossible)

    def _change(self, sub: SubNetwork) -> JsonObject:
        running = self._runtime.queries.get(sub.name)
        if running is None:
            return {"name": sub.name, "change": "added", "blip": None, "blip_measured": 0, "loses_state": []}
        if self._runtime.runs_unchanged(sub):
            return {
                "name": sub.name,
                "change": "unchanged",
                "blip": 0.0,
                "blip_measured": 0,
                "loses_state": [],
            }
        before, after = (self._runtime.box_facts((each,)) for each in (running.sub, sub))
        lost = sorted(name for name, fact in before.items() if after.get(name) != fact)
        blip, times = self._blip(sub.name)
        return {
            "name": sub.name,
            "change": "changed",
            "blip": blip,
            "blip_measured": times,
            "loses_state": lost,
        }

    def _gone(self, subs: tuple[SubNetwork, ...]) -> list[JsonObject]:
        names = {sub.name for sub in subs}
        gone = [sub.name for sub in self._runtime.subs if sub.name not in names]
        shown: JsonObject = {"change": "removed", "blip": None, "blip_measured": 0, "loses_state": []}
        return [{"name": name, **shown} for name in gone]

    def _blip(self, subnetwork: str) -> tuple[float | None, int]:
        """The mean of the last pauses that were measured: of this sub-network, else of any."""
        events = self._runtime.running_records().catalog.events("replace", last=200)
        own = [event.detail["blip"] for event in events if event.subject == subnetwork]
        measured = (own or [event.detail["blip"] for event in events])[-_BLIPS:]
        return (round(sum(measured) / len(measured), 3), len(measured)) if measured else (None, 0)

    def apply(self, text: str, by: str, *, fresh_state: bool = False) -> JsonObject:
        """Make an edit. If it fails, the network from before runs on."""
        before, plan = self.text(), self.preview(text)
        _must_be_possible(plan, fresh_state=fresh_state)
        answer = self._replace(plan, by, fresh_state=fresh_state)
        self._before.append(before)
        return answer

    def undo(self, by: str, *, fresh_state: bool = False) -> JsonObject:
        """Go back to the network before the last edit."""
        text = self._before[-1] if self._before else self._recorded_before()
        plan = self.preview(text)
        _must_be_possible(plan, fresh_state=fresh_state)
        answer = self._replace(plan, by, fresh_state=fresh_state)
        if self._before:
            self._before.pop()
        return answer

    def _recorded_before(self) -> str:
        catalog = self._runtime.running_records().catalog
        record = catalog.network(catalog.version() - 1)
        if record is None or record.form != "yaml":
            raise RefusedChangeError("there is no edit to undo", hint="see /api/versions")
        return record.text

    def _replace(self, plan: Plan, by: str, *, fresh_state: bool) -> JsonObject:
        runtime, old = self._runtime, self._runtime.written
        try:
            blips = runtime.replace(plan.network, fresh_state=fresh_state)
        except Exception:
            self._restore(old)
            raise
        version = runtime.running_records().catalog.version()
        runtime.running_records().event(
            "edit", runtime.network.name, version=version, by=by, words=plan.words, blips=blips
        )
        return {"version": version, "blips": blips, "words": plan.words}

    def _restore(self, old: Network) -> None:
        """Let the old network run again, with its state if that is still there."""
        try:
            self._runtime.replace(old)
        except PenstockError:
            self._runtime.replace(old, fresh_state=True)


def with_lists_of(old: Network, new: Network) -> Network:
    """The new network, with the lists and callbacks that the old one fills.

    A text cannot name a list of this process. Somebody holds the old one, and wants to see what comes.
    """
    ends = {node.name: node for node in old.nodes.values() if isinstance(node, Output) and node.to.in_process}
    kept = [
        replace(node, to=ends[node.name].to)
        for node in new.nodes.values()
        if isinstance(node, Output)
        and node.name in ends
        and node.to.identity() == ends[node.name].to.identity()
    ]
    nodes = dict(new.nodes) | {node.name: node for node in kept}
    return Network.of(new.name, nodes.values(), groups=new.groups, control=new.control) if kept else new


def _must_be_possible(plan: Plan, *, fresh_state: bool) -> None:
    if plan.needs_new_checkpoint:
        raise RefusedChangeError(
            "this edit needs a new checkpoint", found=plan.needs_new_checkpoint, hint="start it anew with one"
        )
    if plan.needs_fresh_state and not fresh_state:
        lost = sorted({box for sub in plan.subnetworks for box in sub["loses_state"]})
        raise RefusedChangeError(
            "this edit loses state",
            found=f"of {', '.join(lost)}" if lost else "",
            hint='send "fresh_state": true if that is meant',
        )


def _effects(changes: list[JsonObject], impossible: str) -> list[str]:
    lines = [f"this needs a new checkpoint: {impossible}"] if impossible else []
    for change in changes:
        lines += [_effect(change), *(f"'{box}' loses its state" for box in change["loses_state"])]
    return [*lines, "nobody else notices" if changes else "nothing changes"]


def _effect(change: JsonObject) -> str:
    name, blip = change["name"], change["blip"]
    if change["change"] == "added":
        return f"sub-network '{name}' is new and starts"
    if change["change"] == "removed":
        return f"sub-network '{name}' ends; its position and state are deleted"
    pause = "how long is not measured yet" if blip is None else f"about {blip:.1f} s"
    return f"sub-network '{name}' pauses: {pause}"
