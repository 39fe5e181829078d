"""What an open page costs a run: Linear Road at one L, stretches with a page and without, in pairs.

One run of `penstock lr run --console` on the busiest minutes, as a trial of a rating is. Within it a browser
opens the page for a stretch and closes it for the next one; which comes first changes from pair to pair. Two
whole runs differ by up to 8 % without any reason, which is more than a page costs
(benchmarks/results/20261117/web-console-162440.json). Within one run they share JVM, workers and compiled
code. The browser is no child of the run, so its CPU is not counted.
"""

from __future__ import annotations

import json
import queue
import shutil
import statistics
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

from playwright.sync_api import Browser

from benchmarks.common.process_tree import cpu_seconds, kit_command
from penstock.linear_road.rate.plan import RatePlan, Window, trial_of
from penstock.linear_road.rate.prepared_input import RateSet
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import TrainRecord

_PATIENCE = 900.0  # seconds of one run
_SETTLED = 5.0  # seconds after a page was opened or closed
_AT_THE_END = 10.0  # seconds of the run that no stretch needs
Stretch = tuple[float, float, float]  # from, to, CPU-seconds


def measured_pairs(
    browser: Browser, plan: RatePlan, prepared: RateSet, expressways: float, pairs: int
) -> dict[str, Any]:
    """The figures of all pairs, and the median of what a page adds."""
    window = trial_of(plan, prepared.rates, prepared.cut)
    stretch = (window.end - window.scored_from - _AT_THE_END) / (2 * pairs) - _SETTLED
    with _running(plan, prepared, window, expressways) as run:
        url, pid = run.url(), run.process.pid
        time.sleep(plan.warm_up)
        stretches = [
            {page: _stretch(browser, url, pid, stretch, page=page) for page in _order(number)}
            for number in range(pairs)
        ]
        run.process.wait(_PATIENCE)
        said = run.last_words()
    record = json.loads(_record_of(plan.out / "run", said).read_text(encoding="utf-8"))
    trains = _trains(plan.out / "run")
    rows = [_pair(number, both, trains) for number, both in enumerate(stretches)]
    more = [row["more_cpu"] for row in rows]
    return {
        "L": expressways,
        "seconds_of_a_stretch": stretch,
        "pairs": rows,
        "more_cpu_median": statistics.median(more),
        "more_cpu_min": min(more),
        "more_cpu_max": max(more),
        "late": sum(figures["late"] for figures in record["latency"].values()),
        "finished": record["finished"],
        "cores": record["cost"].get("cores"),
    }


def _order(number: int) -> tuple[bool, bool]:
    return (False, True) if number % 2 == 0 else (True, False)


def _pair(number: int, both: dict[bool, Stretch], trains: list[TrainRecord]) -> dict[str, Any]:
    cost = {page: used / _tuples(trains, begin, end) * 1e6 for page, (begin, end, used) in both.items()}
    return {
        "pair": number,
        "page_first": _order(number)[0],
        "without_cpu_s_per_million": cost[False],
        "with_cpu_s_per_million": cost[True],
        "more_cpu": cost[True] / cost[False] - 1,
    }


def _trains(out: Path) -> list[TrainRecord]:
    catalog = Catalog(out / "_checkpoint" / "catalog.db")
    trains = [train for name in catalog.totals() for train in catalog.trains(name, last=catalog.keep)]
    catalog.close()
    return trains


def _tuples(trains: list[TrainRecord], begin: float, end: float) -> int:
    """What came in from sources within these seconds."""
    within = [train for train in trains if begin <= train.end < end]
    return sum(account.offered for train in within for account in train.accounts)


def _stretch(browser: Browser, url: str, pid: int, seconds: float, *, page: bool) -> Stretch:
    """Some seconds of the run, with a page that is open all the time or without any."""
    with _open(browser, url) if page else nullcontext():
        time.sleep(_SETTLED)
        begin, used = time.time(), cpu_seconds(pid)
        time.sleep(seconds)
        return begin, time.time(), cpu_seconds(pid) - used


@contextmanager
def _open(browser: Browser, url: str) -> Iterator[None]:
    """The page, which must show something new at the end of the block."""
    page = browser.new_page(viewport={"width": 1920, "height": 1080})
    try:
        page.goto(url)
        page.wait_for_selector("[data-node]")
        first = page.locator("header").inner_text()
        yield
        last = page.locator("header").inner_text()
        if first == last or "live" not in last:
            raise RuntimeError(f"the page was not live: {last}")
    finally:
        page.close()


def _running(plan: RatePlan, prepared: RateSet, window: Window, expressways: float) -> _Started:
    out = plan.out / "run"
    shutil.rmtree(out, ignore_errors=True)
    words = ["run", "--input", prepared.slices.path, "--out", out, "--history", prepared.history, "--quiet"]
    words += ["--xways", expressways, "--from", window.begin, "--until", window.end]
    words += ["--scored-from", window.scored_from, "--console", "--port", 0]
    return _Started(kit_command(*words))


def _record_of(out: Path, said: str) -> Path:
    if not (out / "run.json").is_file():
        raise RuntimeError(f"a run has left no record: {said}")
    return out / "run.json"


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


def plan_of(folder: Path, prepared: Path | None, *, warm_up: int, minutes: int, quick: bool) -> RatePlan:
    """The plan whose trial is run; --quick generates a small city of its own."""
    if quick:
        few: dict[str, Any] = {"base": 1.0, "traffic_minutes": 10, "days": 7, "minutes": minutes}
        return RatePlan(folder, trial_minutes=minutes, warm_up=20, set=prepared, **few)
    return RatePlan(folder, trial_minutes=minutes, warm_up=warm_up, set=prepared)
