"""The forms in which sub-networks run, kept beside their trains: a restart finds them again.

State may depend on the form: a filter in front of a box keeps tuples out of it. A network in which that
filter is another one is refused, unless it begins with fresh state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.model.errors import NetworkError
from penstock.model.json_types import JsonObject
from penstock.model.writing.network import Network
from penstock.rewrite.forms import Form
from penstock.rewrite.settling import lacking
from penstock.rewrite.subnetworks import SubNetwork, reaching
from penstock.runtime.box_facts import configuration
from penstock.store.durable import make_directory, read_record, write_record

_FILE = "form.json"


class Forms:
    """The forms of all sub-networks of a checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint

    def form(self, name: str) -> Form | None:
        """The form in which a sub-network runs; None: as written."""
        record = self._read(name)
        return Form.of_plain(record["form"]) if record else None

    def running(self, sub: SubNetwork) -> SubNetwork:
        """The sub-network as it shall run."""
        record = self._read(sub.name)
        if not record:
            return sub
        self._must_fit(sub, record["lacking"])
        return Form.of_plain(record["form"]).of(sub)

    def begin(self, sub: SubNetwork) -> SubNetwork:
        """The sub-network as it starts now. From here on its state lacks what this form keeps out of it."""
        form, running = self.form(sub.name), self.running(sub)
        if form is not None and running.written is not None:
            self.keep(sub, form)
        return running

    def keep(self, sub: SubNetwork, form: Form) -> None:
        """Remember a form. What the state lacks by an earlier one, it still lacks."""
        running, written = form.of(sub), sub.as_written
        pairs = lacking(running.network, written)
        ways = {f"{name} {box}": [name, box, _way(written, name, box)] for name, box in sorted(pairs)}
        known = self._read(sub.name).get("lacking", {})
        make_directory(self._path(sub.name).parent)
        write_record(self._path(sub.name), {"form": form.plain(), "lacking": {**known, **ways}}, sync=True)

    def forget(self, name: str) -> None:
        """The sub-network begins anew."""
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._checkpoint / "queries" / name / _FILE

    def _read(self, name: str) -> JsonObject:
        path = self._path(name)
        return read_record(path) if path.exists() else {}

    def _must_fit(self, sub: SubNetwork, known: Mapping[str, list[str]]) -> None:
        """Refuse a network without a filter that the state relies on."""
        nodes = sub.as_written.nodes
        for name, box, way in known.values():
            if box in nodes and _way(sub.as_written, name, box) != way:
                raise NetworkError(
                    f"its state lacks what filter '{name}' behind it removes: the optimizer had moved that "
                    f"filter in front of it, and in this network the way to '{name}' is another one",
                    box=box,
                    where=nodes[box].where,
                    hint="put it back; or start with a new checkpoint; "
                    "or, while running, Runtime.replace(network, fresh_state=True)",
                )


def forms_texts(subs: Iterable[SubNetwork], forms: Forms) -> list[str]:
    """What the optimizer has changed in each sub-network, for people."""
    texts = []
    for sub in subs:
        form = forms.form(sub.name)
        steps = form.steps(sub.as_written) if form is not None else ()
        if steps:
            lines = [f"sub-network '{sub.name}' runs in another form:", *(f"  {step.says}" for step in steps)]
            texts.append("\n".join(lines))
    return texts


def _way(network: Network, filter_: str, box: str) -> str:
    """Identify the boxes from a box to a filter behind it; empty if there is no such way."""
    if filter_ not in network.nodes or box not in reaching(network, [filter_]):
        return ""
    between = [name for name in reaching(network, [filter_]) if box in reaching(network, [name])]
    described = [
        (name, network.nodes[name].inputs, sorted(configuration(network.nodes[name]).items(), key=str))
        for name in sorted(between)
        if name != box
    ]
    return hashlib.sha256(repr(described).encode()).hexdigest()[:16]
