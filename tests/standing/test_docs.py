"""docs/standing.md: its queries are queries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.model.types import Schema
from penstock.standing.language.language import parse
from penstock.standing.language.query import StreamInfo

PAGE = Path(__file__).parents[2] / "docs" / "standing.md"
STREAMS = {
    "reports": StreamInfo("reports", Schema.parse("time TIMESTAMP, vid INT, spd INT, seg INT")),
    "fined": StreamInfo("fined", Schema.parse("time TIMESTAMP, vid INT, amount INT")),
}
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("text", QUERIES)
def test_the_queries_of_the_page(text: str) -> None:
    assert parse(text, STREAMS).branches


def test_there_are_some() -> None:
    assert len(QUERIES) >= 4
