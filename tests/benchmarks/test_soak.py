"""The pieces of a soak: their tests exist, results count by commit, and counts must be reached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.soak import collected
from benchmarks.soak.collected import collect, shortfalls, total
from benchmarks.soak.pieces import PIECES, Piece

ROOT = Path(__file__).resolve().parents[2]
PROMISED = {
    "kills_of_a_driver": 20,
    "kills_of_a_worker": 20,
    "attaches": 100,
    "networks_on_spark": 2_000,
    "standing_cases": 6_000,
    "kills_of_a_worker_with_a_diffused_join": 1,
    "random_kills": 200,
    "fuzzed_rows": 10_000_000,
    "corruptions_by_readers": 4_500,
    "corruptions_by_restart": 500,
    "clock_jumps": 20,
    "fillings_of_the_disk": 20,
    "clients": 2_000,
    "seconds_of_clients": 60,
    "followers_that_do_not_read": 1_000,
    "hostile_requests": 10_000,
}


def result(piece: Piece, **changes) -> dict:
    figures = {"did": dict(piece.counts), "outcomes": {"passed": 1}, "tests": []}
    about = {"commit": "new", "dirty": False, "quick": False, "outcome": "ok"}
    rest = {"started": "now", "seconds": 1.0, "machine": {}, "figures": figures}
    return {"benchmark": f"soak-{piece.name}", **about, **rest, **changes}


@pytest.fixture
def put(tmp_path, monkeypatch):
    monkeypatch.setattr(collected, "RESULTS", tmp_path)

    def put(piece: Piece, time: str, **changes) -> None:
        (tmp_path / "20261117").mkdir(exist_ok=True)
        file = tmp_path / "20261117" / f"soak-{piece.name}-{time}.json"
        file.write_text(json.dumps(result(piece, **changes)))

    return put


def test_the_pieces_do_what_is_promised():
    counts: Counter[str] = Counter()
    for piece in PIECES.values():
        counts.update(piece.counts)
    sums = {name: sum(n for each, n in counts.items() if each.startswith(name)) for name in PROMISED}
    sums["kills_of_a_worker"] -= counts["kills_of_a_worker_with_a_diffused_join"]
    sums["clients"] = counts["clients"]
    assert {name: least for name, least in PROMISED.items() if sums[name] < least} == {}


def test_a_piece_is_short():
    assert [piece.name for piece in PIECES.values() if piece.minutes > 20] == []


def test_the_tests_of_the_pieces_exist():
    """Pytest itself says so, with the parameters of a soak."""
    named = [test for piece in PIECES.values() for test in piece.tests]
    assert [test for test in named if not (ROOT / test.partition("::")[0]).exists()] == []
    single = [test for test in named if "::" in test]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-m", "slow or soak", "-n", "0", *single]
    environment = {**os.environ, "PENSTOCK_SOAK": "1", "PENSTOCK_ENGINES": "local,spark"}
    said = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert [line for line in said.stdout.splitlines() if "::" in line] == single, said.stdout[-2000:]


def test_the_newest_result_counts(put):
    piece = PIECES["http"]
    put(piece, "100000")
    put(piece, "110000", seconds=2.0)
    assert collect([piece], ["new"], quick=False)["http"].file == "20261117/soak-http-110000.json"


@pytest.mark.parametrize(
    "change", [{"outcome": "wrong"}, {"dirty": True}, {"commit": "old"}, {"quick": True}, {"commit": None}]
)
def test_what_does_not_count(put, change):
    put(PIECES["http"], "100000", **change)
    assert collect([PIECES["http"]], ["new"], quick=False) == {}


def test_a_name_that_begins_like_another_is_no_result_of_it(put):
    put(Piece("kills-more", (), 1), "100000")
    assert collect([Piece("kills", (), 1)], ["new"], quick=False) == {}


def test_the_whole_names_its_pieces_and_adds_up_their_counts(put):
    pieces = [PIECES["networks-0"], PIECES["networks-1"]]
    put(pieces[0], "100000")
    put(pieces[1], "100000", commit="newer")
    whole = total(collect(pieces, ["new", "newer"], quick=False))
    assert whole["did"] == {"networks_on_spark": 950}
    assert whole["commits"] == ["new", "newer"]
    assert set(whole["pieces"]) == {"networks-0", "networks-1"}


def test_a_piece_that_did_too_little_has_not_passed():
    assert shortfalls(PIECES["attaches"], {"attaches": 100}) == []
    assert shortfalls(PIECES["attaches"], {}) == ["attaches: attaches: 0, at least 100 expected"]
