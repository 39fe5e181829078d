"""What `penstock run` shows while it runs."""

from __future__ import annotations

from io import StringIO
from types import SimpleNamespace

from rich.console import Console

from penstock.cli.run import view
from penstock.control.report import OutputReport, QosReport, SourceReport, ValveReport
from penstock.runtime.records.train_records import BoxFlow, Status
from penstock.store.catalog.record_types import BoxCount, Latency


def shown(status: Status) -> list[list[str]]:
    console = Console(file=StringIO(), width=140)
    console.print(view(SimpleNamespace(name="n"), status))
    lines = console.file.getvalue().splitlines()
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]


def test_under_control_it_shows_utilities_and_what_is_shed():
    report = QosReport(
        (OutputReport("alarms", utility=1.0, utility_minute=0.97, share=0.5),),
        (SourceReport("cars", 1000, 700, 300, 500.0, 150.0),),
        (ValveReport("cars", 0.5, "blocks"),),
    )
    console = Console(file=StringIO(), width=140)
    console.print(view(SimpleNamespace(name="n"), Status((), {}, {}, 0), report))
    text = console.file.getvalue()
    assert "alarms: utility 1.00 now, 0.97 in the last minute; share 50 %" in text
    assert "300 shed (150/s)" in text
    assert "valve at cars: keeps 50 % of blocks" in text


def test_totals_rates_and_train_sizes_of_each_arrow():
    status = Status(
        (),
        {
            "cars": BoxCount("cars", 1000, 1000),
            "slow": BoxCount("slow", 1000, 250, dead=3, estimated=True),
            "new": BoxCount("new"),
        },
        {"out": Latency("out", 0.0, 1, 1.5, 1.5, 1.5, 1.5)},
        3,
        {"cars": BoxFlow(50.4, 50.4, 100, 100), "slow": BoxFlow(50.4, 12.5, 100, 25)},
    )
    rows = {row[0]: row[1:] for row in shown(status) if len(row) == 9}
    assert rows["cars"] == ["1,000", "50", "100", "1,000", "50", "100", "1.000", ""]
    assert rows["slow"] == ["~1,000", "~50", "~100", "~250", "~12", "~25", "~0.250", "3"]
    assert rows["new"] == ["0", "", "", "0", "", "", "", ""]
