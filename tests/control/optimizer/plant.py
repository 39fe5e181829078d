"""A run without Spark: trains whose CPU follows from true costs, which the optimizer does not know."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from penstock.control.optimizer.cycle import Optimizer
from penstock.control.optimizer.decide import Limits
from penstock.model.costs import Line, MeasuredBox
from penstock.rewrite.cost_model import CostModel
from penstock.rewrite.subnetworks import split
from penstock.runtime.forms import Forms
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import BoxCount, InputLoad, TrainRecord

LIMITS = Limits()


class Plant:
    """One sub-network, a train a second. `truth`: microseconds a tuple of each box, tuples out of each in."""

    def __init__(self, folder, network, truth, *, rate=10_000, blip=0.2):
        self.network, self.checkpoint, self.once = network, folder, False
        self.subs = split(network)
        (sub,) = self.subs
        self.name, self.truth, self.rate, self.blip = sub.name, truth, rate, blip
        self.now, self.number = 1_000_000.0, 0
        self.catalog, self.forms = Catalog(folder / "catalog.db"), Forms(folder)
        self.decisions = Decisions(self.catalog)
        self.first_form = None
        log = SimpleNamespace(ticket=lambda _: None)
        steering = SimpleNamespace(valves=(), held=False, monitors={})
        settings = SimpleNamespace(usual=True)
        query = SimpleNamespace(
            sub=self.forms.running(sub), steering=steering, settings=settings, log=log, last=0
        )
        self.queries = {sub.name: query}
        self.swaps = []
        self.optimizer = self.begun()

    def begun(self, limits=LIMITS):
        """An optimizer whose thread does nothing: the test takes the looks."""
        optimizer = Optimizer(replace(limits, every=10**6), clock=lambda: self.now)
        optimizer.begin(self)
        return optimizer

    def running_records(self):
        return SimpleNamespace(catalog=self.catalog)

    def rewrite(self, name, form):
        query = self.queries[name]
        written = replace(query.sub, network=query.sub.as_written, written=None)
        self.forms.keep(written, form)
        query.sub = self.forms.running(written)
        self.swaps.append(form)
        self.catalog.record_event("rewrite", name, at=self.now, blip=self.blip)
        return self.blip

    def cpu(self):
        """What the running form truly costs a second."""
        return self._model().total(self.queries[self.name].sub.network) / 1e6

    def _model(self):
        return CostModel(self.measured(), {name: float(self.rate) for name in self.subs[0].inputs})

    def measured(self):
        return {
            name: MeasuredBox(name, self.name, 1, 1_000_000, int(share * 1e6), Line(0, us / 1e6))
            for name, (us, share) in self.truth.items()
        }

    def run(self, seconds):
        """Trains go by, counted under the names as written."""
        for _ in range(seconds):
            self.now += 1.0
            boxes = tuple(self._count(name, us, share) for name, (us, share) in self.told().items())
            cpu, start = 0.05 + self.cpu(), self.now - 0.5
            record = TrainRecord(self.name, self.number, start, self.now, self.rate, boxes, (), cpu)
            self.catalog.record_train(record)
            loads = [
                InputLoad(name, self.name, self.now, 0, float(self.rate)) for name in self.subs[0].inputs
            ]
            self.catalog.record_second(int(self.now), loads, [])
            self.number += 1

    def _count(self, name, us, share):
        seconds = us * self.rate / 1e6
        return BoxCount(name, self.rate, int(self.rate * share), wall=seconds, cpu=seconds)

    def told(self):
        """What is measured of the boxes; the truth, unless a test says otherwise."""
        return self.truth

    def look(self, seconds=60):
        """A minute, then a look."""
        self.run(seconds)
        self.optimizer.look()

    def said(self):
        return [each.sentence for each in self.decisions.last()]
