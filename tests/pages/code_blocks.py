"""The code blocks of a Markdown page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]+?) -->\n)?"
    r"^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block; `reason`: why it is not run."""

    language: str
    text: str
    title: str
    reason: str
    line: int


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text()
    return [
        Block(
            m["language"],
            m["text"],
            m["title"] or "",
            m["reason"] or "",
            text[: m.start("language")].count("\n") + 1,
        )
        for m in _BLOCK.finditer(text)
    ]
