"""`penstock run --console` as a user starts it: its page, `attach` and `apply` from a terminal.

And `penstock console` beside it and after its end.
"""

from __future__ import annotations

import json
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect
from tests.web.browser.real_run import LONG, traffic
from tests.web.browser.test_page import panel

import penstock as ps

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def penstock(*words: str) -> list[str]:
    return [sys.executable, "-m", "penstock.cli.main", *words]


@contextmanager
def started(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command that serves, and its address; it is told to end with the block."""
    with subprocess.Popen(
        penstock(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as it:
        said: queue.Queue[str] = queue.Queue()

        def read() -> None:
            assert it.stderr is not None
            for line in it.stderr:
                said.put(line)
            said.put("")

        threading.Thread(target=read, daemon=True).start()
        try:
            lines = []
            while not (found := re.match(r"console: (http\S+)", lines[-1] if lines else "")):
                lines.append(said.get(timeout=300))
                assert lines[-1], "".join(lines)
            yield it, found[1]
        finally:
            it.terminate()
            it.wait(120)


def done(*words: str) -> tuple[int, str, str]:
    ended = subprocess.run(penstock(*words), capture_output=True, text=True, check=False, timeout=300)
    return ended.returncode, ended.stdout, ended.stderr


def get(url: str) -> Any:
    with urlopen(url, timeout=60) as answer:
        return json.load(answer)


def test_a_run_as_a_user_starts_it(tmp_path: Path, open_page: Callable[..., Page]) -> None:
    file, checkpoint = tmp_path / "traffic.yaml", str(tmp_path / "checkpoint")
    file.write_text(ps.to_yaml(traffic()))
    with started("run", str(file), "--checkpoint", checkpoint, "--console", "--port", "0") as (run, url):
        page = open_page(url)
        expect(page.get_by_text("running", exact=True)).to_be_visible(timeout=LONG)
        terminals(url, file)
        taken = url.rpartition(":")[2]
        code, _, said = done("run", str(file), "--checkpoint", f"{checkpoint}2", "--console", "--port", taken)
        assert code == 2
        assert "choose another with --port" in said
        with started("console", checkpoint, "--port", "0") as (_, beside):
            watch_another_process(beside, open_page)
            run.terminate()
            assert run.wait(120) == 0
            # The page of the run keeps its last state; that of the checkpoint goes on.
            expect(page.locator("header")).to_contain_text("ended", timeout=LONG)
            expect(page.get_by_text("not connected")).to_be_visible()
            expect(panel(page, "Step")).to_contain_text("the run has ended")
            shown = open_page(beside)
            expect(shown.get_by_text("ended", exact=True)).to_be_visible(timeout=LONG)
            past = panel(shown, "Past")
            expect(past).to_contain_text("This run has ended. What you see is its last state", timeout=LONG)
            expect(past.get_by_role("figure", name="reports: offered a second")).to_be_visible(timeout=LONG)


def terminals(url: str, file: Path) -> None:
    """`penstock attach` and `penstock apply` do what the page does."""
    code, rows, said = done(
        "attach", url, "recent", "SELECT seg, spd FROM recent WHERE spd < 20", "--limit", "5"
    )
    assert code == 0, said
    assert len(rows.splitlines()) == 5
    assert all(json.loads(row)["spd"] < 20 for row in rows.splitlines())
    file.write_text(file.read_text().replace("spd > 80", "spd > 70"))
    code, out, said = done("apply", url, str(file), "--yes")
    assert code == 0, said
    assert "filter 'racing': spd > 80 becomes spd > 70" in out
    assert "version 2 runs; pauses:" in out
    good = file.read_text()
    file.write_text(good.replace("spd > 70", "speed > 70"))
    code, _, said = done("apply", url, str(file), "--yes")
    file.write_text(good)
    assert code == 2
    assert "speed" in said
    assert get(f"{url}/api/network")["version"] == 2


def watch_another_process(url: str, open_page: Callable[..., Page]) -> None:
    """A console beside the run looks, and says that it does no more."""
    page = open_page(url)
    expect(page.get_by_text("running elsewhere")).to_be_visible(timeout=LONG)
    expect(page.get_by_text("looking only", exact=True)).to_be_visible()
    body = json.dumps({"version": 2, "subnetwork": "recent"}).encode()
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(f"{url}/api/hold", body, {"content-type": "application/json"}))
    assert refused.value.code == 409
    assert "penstock run NET --console" in json.load(refused.value)["hint"]
    page.close()
