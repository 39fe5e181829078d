"""Lines about what is measured: load of inputs, costs, utilities. `penstock status` and `run` print them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from penstock.control.report import OutputReport, QosReport, SourceReport, SubnetworkReport
from penstock.control.utility import delay_at, in_good_zone, mean_utility
from penstock.model.costs import Line, MeasuredBox, MeasuredCosts, MeasuredSubnetwork
from penstock.model.qos import QoS
from penstock.store.catalog.record_types import InputLoad, OutputSecond


def load_lines(loads: Iterable[InputLoad]) -> list[str]:
    """What comes to each input and what waits there.

    >>> load_lines([InputLoad("cars", "main", 0.0, 9, 1200.4, 3400, 81920, 2.31)])
    ['cars: 1,200/s offered, 3,400 tuples wait (82 kB), the oldest for 2.3 s']
    >>> load_lines([InputLoad("cars", "main", 0.0, 9)])
    ['cars: rate unknown, backlog unknown']
    """
    return [f"{load.input}: {_rate(load)}, {_backlog(load)}" for load in loads]


def _rate(load: InputLoad) -> str:
    return "rate unknown" if load.offered_rate is None else f"{load.offered_rate:,.0f}/s offered"


def _backlog(load: InputLoad) -> str:
    if load.waiting is None and load.waiting_bytes is None:
        return "backlog unknown"
    if not load.waiting and not load.waiting_bytes:
        return "nothing waits"
    size = "" if load.waiting_bytes is None else _size(load.waiting_bytes)
    waiting = f"{load.waiting:,} tuples wait ({size})" if load.waiting is not None else f"{size} wait"
    return waiting.replace(" ()", "") + ("" if load.age is None else f", the oldest for {load.age:.1f} s")


def _size(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.0f} {unit}"
    return f"{count} bytes"


def cost_lines(costs: MeasuredCosts) -> list[str]:
    """What trains and boxes cost."""
    lines = []
    for sub in costs.subnetworks.values():
        lines += _subnetwork_lines(sub)
        boxes = [box for box in costs.boxes.values() if box.subnetwork == sub.subnetwork]
        lines += [f"  {_box_text(box)}" for box in boxes if box.cpu is not None]
    return lines


def _subnetwork_lines(sub: MeasuredSubnetwork) -> list[str]:
    if sub.wall is None:
        return []
    cpu = "unknown" if sub.cpu is None else _line(sub.cpu)
    beside = "" if sub.alone else " (beside others)"
    return [f"{sub.subnetwork}: a train takes {_line(sub.wall)}; CPU {cpu}{beside}"]


def _box_text(box: MeasuredBox) -> str:
    ratio = "" if box.selectivity is None else f"; selectivity {box.selectivity:.3f}"
    return f"{box.box}: CPU {'unknown' if box.cpu is None else _line(box.cpu)}{ratio}"


def _line(line: Line) -> str:
    return f"{line.fixed:.3f} s + {line.per_tuple * 1e6:.2f} us a tuple"


def utility_lines(qos: Mapping[str, QoS], seconds: Mapping[str, Sequence[OutputSecond]]) -> list[str]:
    """How good each output with a QoS was in the last minute."""
    return [_utility(name, graphs, seconds.get(name, ())) for name, graphs in qos.items()]


def _utility(name: str, qos: QoS, seconds: Sequence[OutputSecond]) -> str:
    mean = mean_utility(qos, seconds)
    if mean is None:
        return f"{name}: nothing was due"
    zones = [zone for zone in (in_good_zone(qos, second) for second in seconds) if zone is not None]
    p50, p99 = delay_at(seconds, 0.5), delay_at(seconds, 0.99)
    delays = "nothing delivered" if p50 is None else f"delay p50 {p50:.2f} s, p99 {p99:.2f} s"
    good = f"good up to {qos.threshold:g} s: {sum(zones)} of {len(zones)} seconds"
    return f"{name}: utility {mean:.2f} in the last minute, {delays}, {good}"


def report_lines(report: QosReport) -> list[str]:
    """How a network under control stands: load, outputs, sources, valves, sub-networks.

    >>> from penstock.control.report import ValveReport
    >>> report = QosReport((OutputReport("alarms", 4.0, 1.0, 0.9, 0.4, 1.2, 0.5, True, None),), load=3.0,
    ...     capacity=2.0, valves=(ValveReport("cars", 0.5, "tuples"),))
    >>> load, alarms, valve = report_lines(report)
    >>> load, valve
    ('load 3.00 of 2.00 CPU-s a second', 'valve at cars: keeps 50 % of tuples')
    >>> alarms.split("; ")[0]
    'alarms: utility 1.00 now, 0.90 in the last minute'
    """
    load = "load unknown"
    if report.load is not None and report.capacity is not None:
        load = f"load {report.load:.2f} of {report.capacity:.2f} CPU-s a second"
    return [
        load,
        *(_output_line(each) for each in report.outputs),
        *(_source_line(each) for each in report.sources),
        *(f"valve at {each.at}: keeps {100 * each.share:.0f} % of {each.grain}" for each in report.valves),
        *(_scheduled(each) for each in report.subnetworks),
    ]


def _output_line(output: OutputReport) -> str:
    if output.utility_minute is None:
        how = "nothing was due"
    else:
        now = "-" if output.utility is None else f"{output.utility:.2f}"
        how = f"utility {now} now, {output.utility_minute:.2f} in the last minute"
    if output.delay_p50 is not None and output.delay_p99 is not None:
        how += f"; delay p50 {output.delay_p50:.2f} s, p99 {output.delay_p99:.2f} s"
    zone = {None: "", True: "; in its zone", False: "; out of its zone"}[output.in_zone]
    exact = "inexact" if output.exact_since is None else f"exact since {output.exact_since}"
    exact += "".join(f", {column} +-{100 * error:.2g} %" for column, error in output.errors.items())
    return f"{output.name}: {how}; share {100 * output.share:.0f} %{zone}; {exact}"


def _source_line(source: SourceReport) -> str:
    rate = "unknown" if source.offered_rate is None else f"{source.offered_rate:,.0f}/s"
    waiting = "unknown" if source.waiting is None else f"{source.waiting:,}"
    age = "" if source.age is None else f", the oldest for {source.age:.1f} s"
    return (
        f"{source.name}: {source.offered:,} offered ({rate}), {source.let_in:,} let in, "
        f"{source.shed:,} shed ({source.shed_rate:,.0f}/s); waiting {waiting}{age}"
    )


def _scheduled(sub: SubnetworkReport) -> str:
    waiting = "unknown" if sub.waiting is None else f"{sub.waiting:,}"
    running = "a train runs" if sub.running else "no train runs"
    return f"{sub.name}: priority {sub.priority:.3g}, waiting {waiting}, {running}"
