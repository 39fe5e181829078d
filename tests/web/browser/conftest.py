"""A browser for the tests of the page. It is Debian's Chromium; scripts/chromium.sh finds or installs it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

_ROOT = Path(__file__).parents[3]
OpenPage = Callable[..., Page]

_PROVOKED = (
    "the server responded with a status of 4",
    "net::ERR_CONNECTION_",
    "net::ERR_SOCKET_NOT_CONNECTED",
    "net::ERR_EMPTY_RESPONSE",
)
"""What the browser itself tells when a test provokes a refusal, or stops its server before the page ends.

Everything else is a fault of the page.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process of the suite has the browser; those that need a run on Spark go where the session is."""
    for item in items:
        if Path(__file__).parent in item.path.parents and "spark" not in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a process. Without Chromium these tests fail: they never skip."""
    found = subprocess.run([_ROOT / "scripts/chromium.sh"], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=found.stdout.strip(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Open a console in a browser of its own; the test fails if the page wrote an error to its console."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    context.set_default_timeout(20_000)
    errors: list[str] = []

    def opened(
        url: str, *, width: int = 1280, height: int = 800, dark: bool = False, ready: str = "[data-node]"
    ) -> Page:
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.on("console", lambda message: _note(errors, message))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(url)
        page.wait_for_selector(ready)
        return page

    yield opened
    context.close()
    assert [error for error in errors if not any(words in error for words in _PROVOKED)] == []


def _note(errors: list[str], message: ConsoleMessage) -> None:
    if message.type in ("error", "warning"):
        errors.append(message.text)
