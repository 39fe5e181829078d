"""Does every figure in the documents stand in a result file? Part of `make lint`.

Below the text it covers, a comment names a result file and says where each figure comes from:

    The latch takes 487,000 tuples/s.

    <!-- figures: 20261115/engine-latch-193017.json
    487,000: speed[0].tuples_per_s
    -->

A comment covers the text back to the comment or heading before it. Each figure must be the value of its
expression (`benchmarks/common/expressions.py`) at the printed precision. `given: 300,000 1.10` lists numbers
that nobody measured: goals, options, dates. Several comments may follow one another; together they cover the
text. In a table each figure needs a line of its own, even if two are equal. README.md, docs/performance.md
and docs/performance/ must cite every number; other documents are checked where they have such comments. In
prose, whole numbers up to 12 need no source unless a unit follows.

    python -m benchmarks.check_figures [FILE ...]
    python -m benchmarks.check_figures --suggest FILE     # where a figure without a source might come from
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.common.expressions import ExpressionError, evaluate

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SMALL = 12
COMPARED_DIGITS = 3

_COMMENT = re.compile(r"<!--\s*figures:(.*?)-->", re.DOTALL)
_GIVEN = "given:"
_UNIT = r"\s?(?:%|ms\b|us\b|s\b|MB\b|GB\b|kB\b|CPU|cores?\b|of a core|times\b|tuples)"
_NUMBER = re.compile(rf"(?<![\w.,/-])(-?\d+(?:,\d{{3}})*(?:\.\d+)?)(?![\w/]|[.,]\d|-\w)({_UNIT})?")
_NO_TEXT = (
    re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE),
    re.compile(r"^ {4}.*$", re.MULTILINE),
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"`[^`\n]*\n?[^`\n]*`"),
    re.compile(r"(?<=\])\([^)]*\)"),
    re.compile(r"\b\d{4}-\d\d-\d\d\b"),
    re.compile(r"kill -9"),
    re.compile(r"^#.*$", re.MULTILINE),
    re.compile(r"^\d+\. ", re.MULTILINE),
    re.compile(r"\bL = \d+"),
)


@dataclass(frozen=True)
class Problem:
    """What is wrong, and where."""

    file: Path
    line: int
    text: str

    def __str__(self) -> str:
        shown = self.file.relative_to(ROOT) if self.file.is_relative_to(ROOT) else self.file
        return f"{shown}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Figure:
    """A number in the text."""

    text: str
    line: int
    needs_source: bool
    in_table: bool


@dataclass(frozen=True)
class Source:
    """A line of a comment: this figure is the value of this expression."""

    figure: str
    expression: str
    line: int


@dataclass
class Citation:
    """One comment: a result file (none if it only lists given numbers), its figures, and the
    numbers given.
    """

    line: int
    result: str = ""
    sources: list[Source] = field(default_factory=list)
    given: set[str] = field(default_factory=set)


@dataclass
class Passage:
    """A stretch of text and the comments that cover it."""

    figures: list[Figure]
    citations: list[Citation] = field(default_factory=list)


def passages(text: str) -> Iterator[Passage]:
    """Cut a document at its headings and behind its comments."""
    cuts = [m.start() for m in re.finditer(r"^#", _blanked(text, _NO_TEXT[:3]), re.MULTILINE)]
    begin, passage = 0, None
    for match in [*_COMMENT.finditer(text), None]:
        end = match.start() if match else len(text)
        inner = [cut for cut in cuts if begin < cut < end]
        # Comments that follow one another cover the same text.
        if passage is None or inner or text[begin:end].strip():
            if passage is not None:
                yield passage
            for cut in inner:
                yield Passage(figures_in(text, begin, cut))
                begin = cut
            passage = Passage(figures_in(text, begin, end))
        if match:
            passage.citations.append(citation_of(match[1], text.count("\n", 0, match.start()) + 1))
            begin = match.end()
    if passage is not None:
        yield passage


def figures_in(text: str, begin: int, end: int) -> list[Figure]:
    """The numbers between two places; code, links, headings and dates have none."""
    plain = _blanked(text, _NO_TEXT)
    figures = []
    for match in _NUMBER.finditer(plain, begin, end):
        number = match[1]
        row = plain[plain.rfind("\n", 0, match.start()) + 1 :].startswith("|")
        small = "." not in number and abs(int(number.replace(",", ""))) <= SMALL
        needed = not small or row or match[2] is not None
        figures.append(Figure(number, text.count("\n", 0, match.start()) + 1, needed, row))
    return figures


def _blanked(text: str, patterns: tuple[re.Pattern[str], ...]) -> str:
    """The text with what these patterns match replaced by blanks, so that places stay."""
    for pattern in patterns:
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return text


def citation_of(body: str, line: int) -> Citation:
    """Read the inside of a comment."""
    first, *rest = body.split("\n")
    citation = Citation(line)
    if first.strip().startswith(_GIVEN):
        rest, line = [first, *rest], line - 1
    else:
        citation.result = first.strip()
    for number, text in enumerate(rest, line + 1):
        if text.startswith("  ") and citation.sources:
            # An indented line goes on with the expression before it.
            before = citation.sources.pop()
            citation.sources.append(replace(before, expression=f"{before.expression} {text.strip()}"))
            continue
        figure, colon, expression = text.strip().partition(":")
        if figure + colon == _GIVEN:
            citation.given.update(expression.split())
        elif figure:
            citation.sources.append(Source(figure.strip(), expression.strip(), number))
    return citation


def check(file: Path, *, whole: bool) -> list[Problem]:
    """All problems of a document; `whole`: numbers outside covered passages are problems too."""
    problems = []
    for passage in passages(file.read_text(encoding="utf-8")):
        if passage.citations or whole:
            problems += [Problem(file, line, text) for line, text in problems_of(passage)]
    return problems


def problems_of(passage: Passage) -> Iterator[tuple[int, str]]:
    in_text = {figure.text for figure in passage.figures}
    for citation in passage.citations:
        for text in sorted(citation.given - in_text):
            yield citation.line, f"{text} is given, but the text above does not have it"
        for source in citation.sources:
            if source.figure not in in_text:
                yield source.line, f"{source.figure} is not in the text above"
        yield from wrong_figures(citation)
    yield from ((figure.line, f"{figure.text} has no source") for figure in without_source(passage))


def without_source(passage: Passage) -> Iterator[Figure]:
    """Each figure of a table needs a source of its own, so that no wrong one hides behind its neighbour."""
    given = {text for citation in passage.citations for text in citation.given}
    sources = Counter(source.figure for citation in passage.citations for source in citation.sources)
    left = sources.copy()
    for figure in passage.figures:
        if figure.text in given or not figure.needs_source:
            continue
        if not sources[figure.text] or (figure.in_table and not left[figure.text]):
            yield figure
        left[figure.text] -= figure.in_table


def wrong_figures(citation: Citation) -> Iterator[tuple[int, str]]:
    """Figures that their result file does not bear out."""
    if not citation.sources:
        return
    file = RESULTS / citation.result
    if not file.is_file():
        yield citation.line, f"there is no benchmarks/results/{citation.result}"
        return
    for name in ("command", "commit", "machine"):
        if not load(file).get(name):
            yield citation.line, f"{citation.result} has no {name}: measure it again"
    for source in citation.sources:
        try:
            value = evaluate(source.expression, load(file))
        except ExpressionError as error:
            yield source.line, str(error)
            continue
        if not agrees(source.figure, value):
            yield source.line, f"{source.figure} is {value:,.6g} in {citation.result} ({source.expression})"


@cache
def load(file: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return result


def agrees(figure: str, value: float) -> bool:
    """Whether a value rounds to what is printed; zeros at the end of a whole number may be rounding.

    >>> agrees("487,000", 487_176), agrees("487,100", 487_176), agrees("0.54", 0.5449), agrees("0.54", 0.546)
    (True, False, True, False)
    """
    digits = figure.lstrip("-").replace(",", "")
    if "." in digits:
        tolerance = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    else:
        zeros = len(digits) - len(digits.rstrip("0"))
        tolerance = 0.5 * 10.0 ** min(zeros, max(0, len(digits) - COMPARED_DIGITS))
    return abs(value - float(figure.replace(",", ""))) <= tolerance * (1 + 1e-9)


# -- suggestions


def suggestions(file: Path) -> Iterator[str]:
    """For each figure without a source: expressions over the cited files that give it."""
    for passage in passages(file.read_text(encoding="utf-8")):
        missing = dict.fromkeys(figure.text for figure in without_source(passage))
        for citation in passage.citations:
            if citation.result and (RESULTS / citation.result).is_file():
                leaves = list(numbers(load(RESULTS / citation.result)))
                for figure in missing:
                    fitting = [text for text, value in leaves if agrees(figure, value)]
                    yield f"{citation.line}: {figure}: {' | '.join(fitting[:6]) or '?'}"


def numbers(result: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Every number of a result with its expression, as it is and in other units."""
    parts = {
        "": result["figures"],
        **{name: result.get(name) for name in ("config", "warm_up", "load", "machine")},
    }
    leaves = [leaf for path, part in parts.items() for leaf in leaves_of(part, path)]
    yield from leaves
    for scale in ("1e3 * ", "1e2 * ", "1e-3 * ", "1e-6 * "):
        yield from ((f"{scale}{path}", float(scale.rstrip(" *")) * value) for path, value in leaves)


def leaves_of(value: Any, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, part in value.items():
            step = f".{key}" if re.fullmatch(r"[A-Za-z_]\w*", key) else f'["{key}"]'
            yield from leaves_of(part, (path + step).lstrip("."))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from leaves_of(part, path + _selector(value, number))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


def _selector(rows: list[Any], number: int) -> str:
    """`[name=value]` for the texts that tell a row from its neighbours, `[number]` if none do."""
    row, selector, left = rows[number], "", rows
    for name, text in row.items() if isinstance(row, dict) else ():
        if isinstance(text, str) and "]" not in text:
            fewer = [other for other in left if other.get(name) == text]
            selector, left = (
                (selector + f"[{name}={text}]", fewer) if len(fewer) < len(left) else (selector, left)
            )
    return selector if len(left) == 1 and selector else f"[{number}]"


def documents() -> dict[Path, bool]:
    """The documents to check, and whether every number in them needs a source."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    whole = {ROOT / "README.md", ROOT / "docs" / "performance.md"}
    return {
        page: page in whole or (ROOT / "docs" / "performance") in page.parents
        for page in [ROOT / "README.md", *pages]
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="*", help="default: README.md and docs/")
    parser.add_argument(
        "--suggest", action="store_true", help="say where figures without a source might come from"
    )
    chosen = parser.parse_args()
    files = {file.resolve(): True for file in chosen.files} or documents()
    if chosen.suggest:
        for file in files:
            print("\n".join(suggestions(file)))
        return 0
    problems = [problem for file, whole in files.items() for problem in check(file, whole=whole)]
    for problem in problems:
        print(problem)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
