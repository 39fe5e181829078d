"""What an open page costs a run: Linear Road at one L, with a page and without, in pairs.

Each run is `penstock lr run` in fresh processes on the busiest minutes, as a trial of a rating is. With a
page, a browser of its own has the console open from the beginning to the end; it is no child of the run, so
its CPU is not counted. Without, the run has no console at all. The order changes from pair to pair.
"""

from __future__ import annotations

import json
import queue
import shutil
import statistics
import subprocess
import threading
from collections import deque
from pathlib import Path
from typing import Any, Self

from playwright.sync_api import Browser

from benchmarks.common.facts import load
from benchmarks.common.process_tree import kit_command
from penstock.linear_road.rate.plan import RatePlan, Window, trial_of
from penstock.linear_road.rate.prepared_input import RateSet

_PATIENCE = 900.0  # seconds of one run


def measured_pairs(
    browser: Browser, plan: RatePlan, prepared: RateSet, expressways: float, pairs: int
) -> dict[str, Any]:
    """The figures of all pairs, and the median of what a page adds."""
    window = trial_of(plan, prepared.rates, prepared.cut)
    rows: list[dict[str, Any]] = []
    for number in range(pairs):
        order = (False, True) if number % 2 == 0 else (True, False)
        found = {page: _run(browser, plan, prepared, window, expressways, page=page) for page in order}
        rows.append(
            {
                "pair": number,
                "page_first": order[0],
                **{f"without_{name}": value for name, value in found[False].items()},
                **{f"with_{name}": value for name, value in found[True].items()},
                "more_cpu": found[True]["cpu_s_per_million"] / found[False]["cpu_s_per_million"] - 1,
            }
        )
        print(rows[-1], flush=True)
    more = [row["more_cpu"] for row in rows]
    return {
        "L": expressways,
        "pairs": rows,
        "more_cpu_median": statistics.median(more),
        "more_cpu_min": min(more),
        "more_cpu_max": max(more),
    }


def _run(
    browser: Browser, plan: RatePlan, prepared: RateSet, window: Window, expressways: float, *, page: bool
) -> dict[str, Any]:
    out, before = plan.out / "run", load()
    shutil.rmtree(out, ignore_errors=True)
    words = ["run", "--input", prepared.slices.path, "--out", out, "--history", prepared.history, "--quiet"]
    words += ["--xways", expressways, "--from", window.begin, "--until", window.end]
    words += ["--scored-from", window.scored_from, *(["--console", "--port", 0] if page else [])]
    seen = 0
    with _Started(kit_command(*words)) as run:
        if page:
            seen = _looked(browser, run.url(), run.process)
        run.process.wait(_PATIENCE)
        said = run.last_words()
    if not (out / "run.json").is_file():
        raise RuntimeError(f"a run has left no record: {said}")
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    if page and not seen:
        raise RuntimeError("the page was never live")
    return _figures(record) | {"load_before": before, "statuses_seen": seen}


def _looked(browser: Browser, url: str, process: subprocess.Popen[str]) -> int:
    """Keep the page open until the run ends; gives how many statuses it has shown."""
    page = browser.new_page(viewport={"width": 1920, "height": 1080})
    seen, last = 0, ""
    try:
        page.goto(url)
        page.wait_for_selector("[data-node]")
        while process.poll() is None:
            page.wait_for_timeout(1_000)
            told = page.locator("header").inner_text(timeout=20_000)
            seen, last = seen + (told != last and "live" in told), told
    finally:
        page.close()
    return seen


class _Started:
    """A process whose messages are read all the time, and the URL that it tells."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
        )
        self._said: deque[str] = deque(maxlen=20)
        self._url: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._said.append(line)
            if line.startswith("console: "):
                self._url.put(line.split()[1])
        self._url.put("")

    def url(self) -> str:
        """Where the page is."""
        url = self._url.get(timeout=_PATIENCE)
        if not url:
            raise RuntimeError(f"the run ended before it had a console: {self.last_words()}")
        return url

    def last_words(self) -> str:
        return "".join(self._said)[-1000:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()
        self._reader.join()


def _figures(record: dict[str, Any]) -> dict[str, Any]:
    cost, tolls = record["cost"], record["latency"].get("0")
    return {
        "cpu_s": cost.get("cpu_s"),
        "wall_s": cost.get("wall_s"),
        "cores": cost.get("cores"),
        "cpu_s_per_million": cost.get("cpu_s_per_million"),
        "tuples_per_s": cost.get("tuples_in_per_s"),
        "backlog_s": cost.get("backlog_s"),
        "toll_p99_s": tolls and tolls["p99"],
        "late": sum(figures["late"] for figures in record["latency"].values()),
        "finished": record["finished"],
    }


def plan_of(folder: Path, prepared: Path | None, *, warm_up: int, minutes: int, quick: bool) -> RatePlan:
    """The plan whose trial is run; --quick generates a small city of its own."""
    if quick:
        few = {"base": 1.0, "traffic_minutes": 10, "days": 7, "minutes": 1}
        return RatePlan(folder, trial_minutes=1, warm_up=20, set=prepared, **few)  # type: ignore[arg-type]
    return RatePlan(folder, trial_minutes=minutes, warm_up=warm_up, set=prepared)
