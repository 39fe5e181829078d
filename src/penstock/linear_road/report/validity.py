"""What a run's response times are worth, as a sentence: the summary, the page and the demo say the same."""

from __future__ import annotations

from penstock.linear_road.report.json_values import JsonObject, is_number, part


def doubt(run: JsonObject) -> str | None:
    """Why the response times of a run do not count and what to do about it; None if they do.

    >>> doubt({"valid": True})
    >>> doubt({"valid": False})[:62]
    'Response times do not count: the run was interrupted, and they'
    """
    if run.get("valid", True):
        return None
    driver = part(run, "driver")
    if not driver.get("late_seconds"):
        return (
            "Response times do not count: the run was interrupted, and they include the gap "
            "(run.json, `attempts`). The answers are not affected."
        )
    return (
        f"Response times do not count: the driver was late in {driver['late_seconds']} seconds of the data, "
        f"first at second {driver.get('first_late')}{_by_how_much(driver)}. The answers are not affected. "
        "Another program kept the machine busy, or it is too slow for this speed: "
        "run it again, alone or with a lower --speed."
    )


def _by_how_much(driver: JsonObject) -> str:
    most = part(driver, "lateness_ms").get("max")
    return f", by up to {most / 1000:.1f} s" if is_number(most) else ""
