"""Which results of pieces count for a soak, and what they come to.

Every piece writes a result of its own, so the results are the memory of a soak: there is nothing else to
keep. A result counts if it passed, without local changes, on a commit that belongs to the soak.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.common import facts
from benchmarks.common.results import RESULTS
from benchmarks.soak.pieces import Piece

NAME = "soak"
_NO_CODE = ("benchmarks/results", "docs", "*.md")


@dataclass(frozen=True)
class Collected:
    """The newest result of a piece that counts."""

    file: str
    result: Mapping[str, Any]

    def line(self) -> dict[str, Any]:
        """What the result of the whole soak says about the piece; its tests are in its own file."""
        figures = self.result["figures"]
        about = {key: self.result[key] for key in ("commit", "started", "seconds", "machine")}
        return {"file": self.file, **about, "did": figures["did"], "outcomes": figures["outcomes"]}


class Commits:
    """Whose results count: those of `since`, and of every later commit that HEAD contains."""

    def __init__(self, since: str) -> None:
        self.since = since
        self._known: dict[str, bool] = {}

    def __contains__(self, commit: object) -> bool:
        if not isinstance(commit, str):
            return False
        if commit not in self._known:
            self._known[commit] = _is_ancestor(self.since, commit) and _is_ancestor(commit, "HEAD")
        return self._known[commit]


def newest_code() -> str | None:
    """The last commit that changed more than results and documents; None outside a repository."""
    return _git("log", "-1", "--format=%H", "--", ".", *(f":(exclude){path}" for path in _NO_CODE))


def _is_ancestor(older: str, newer: str) -> bool:
    return _git("merge-base", "--is-ancestor", older, newer) is not None


def _git(*words: str) -> str | None:
    try:
        ended = subprocess.run(["git", *words], cwd=facts.ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return ended.stdout.strip() if ended.returncode == 0 else None


def collect(pieces: Iterable[Piece], commits: Container[object], *, quick: bool) -> dict[str, Collected]:
    """For each piece the newest result that counts, if there is one."""
    return {
        piece.name: newest for piece in pieces if (newest := _newest(piece, commits, quick=quick)) is not None
    }


def _newest(piece: Piece, commits: Container[object], *, quick: bool) -> Collected | None:
    files = sorted(RESULTS.glob(f"*/{NAME}-{piece.name}-[0-9]*.json"), reverse=True)
    for file in files:
        result = json.loads(file.read_text(encoding="utf-8"))
        if counts(result, piece, commits, quick=quick):
            return Collected(str(file.relative_to(RESULTS)), result)
    return None


def counts(result: Mapping[str, Any], piece: Piece, commits: Container[object], *, quick: bool) -> bool:
    """Whether a result is of this piece, passed, and is of a commit that belongs to the soak."""
    return (
        result["benchmark"] == f"{NAME}-{piece.name}"
        and result["outcome"] == "ok"
        and bool(result["quick"]) == quick
        and not result["dirty"]
        and result["commit"] in commits
    )


def shortfalls(piece: Piece, did: Mapping[str, int]) -> list[str]:
    """The counts that a piece has not reached, each in a sentence.

    >>> shortfalls(Piece("p", (), 1, counts={"kills": 20}), {"kills": 3})
    ['p: kills: 3, at least 20 expected']
    """
    return [
        f"{piece.name}: {name}: {did.get(name, 0):,}, at least {least:,} expected"
        for name, least in piece.counts.items()
        if did.get(name, 0) < least
    ]


def total(collected: Mapping[str, Collected]) -> dict[str, Any]:
    """What the pieces come to: commits, every count, and each piece with its file."""
    did: Counter[str] = Counter()
    for piece in collected.values():
        did.update(piece.result["figures"]["did"])
    return {
        "commits": sorted({piece.result["commit"] for piece in collected.values()}),
        "did": dict(sorted(did.items())),
        "seconds": round(sum(piece.result["seconds"] for piece in collected.values())),
        "pieces": {name: piece.line() for name, piece in collected.items()},
    }
