"""What the tests of a piece say about themselves, read from the JUnit file that pytest writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

_MARKS = {"failure": "failed", "error": "error", "skipped": "skipped"}


def read_cases(report: Path) -> list[ET.Element]:
    """The tests of a report; none if pytest did not get so far as to write it."""
    return list(ET.parse(report).getroot().iter("testcase")) if report.exists() else []


def outcome(case: ET.Element) -> str:
    """`passed`, or the kind of mark that JUnit puts on a test that did not."""
    return next((_MARKS[child.tag] for child in case if child.tag in _MARKS), "passed")


def recorded(case: ET.Element) -> dict[str, str]:
    """What a test recorded about itself (`record_property`), as text."""
    return {str(item.get("name")): str(item.get("value")) for item in case.iter("property")}


def what_was_done(cases: Sequence[ET.Element]) -> dict[str, int]:
    """Whole numbers that tests recorded, added up by name.

    Other values say how something went, not how often it was done. So do megabytes; no sum of them means
    anything.

    >>> text = '<testcase><properties><property name="kills" value="2"/></properties></testcase>'
    >>> what_was_done([ET.fromstring(text)] * 2)
    {'kills': 4}
    """
    total: Counter[str] = Counter()
    for case in cases:
        for name, value in recorded(case).items():
            if value.isdigit() and not name.startswith("megabytes"):
                total[name] += int(value)
    return dict(sorted(total.items()))


def summary(cases: Sequence[ET.Element]) -> dict[str, Any]:
    """The figures of a piece: what was done, the outcomes, and every test."""
    return {
        "did": what_was_done(cases),
        "outcomes": dict(Counter(map(outcome, cases))),
        "tests": [
            {
                "test": f"{case.get('classname')}::{case.get('name')}",
                "outcome": outcome(case),
                "seconds": float(case.get("time", 0)),
                **({"told": recorded(case)} if recorded(case) else {}),
            }
            for case in cases
        ],
    }
