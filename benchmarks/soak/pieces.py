"""The pieces of a soak: which tests each runs, how long it takes, and what it must have done in the end.

A piece takes some 20 minutes at most, so that a soak can be collected over several sessions and machines. The
counts are those that the project promises; a piece that passes but did less has not shown anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

KILLED_NETWORKS = ("tumble", "latch", "shedding", "join", "standing", "linear_road")
FAULTS = tuple(
    f"tests/fuzz/test_{name}.py" for name in ("clock_jumps", "disk_full", "durability", "owners", "messages")
)
"""Tests without Spark."""
PARTS_OF_NETWORKS = 4
PARTS_OF_RESTARTS = 4


@dataclass(frozen=True)
class Piece:
    """Tests that run in one process: folders, files or tests, as pytest names them."""

    name: str
    tests: tuple[str, ...]
    minutes: int
    """About so long on two cores."""
    measured: bool = False
    """Whether somebody has run it in full; else `minutes` follows from smaller counts."""
    counts: dict[str, int] = field(default_factory=dict)
    """What the tests must have done at least, by the names that they record."""

    def words(self, pieces: Iterable[Piece]) -> list[str]:
        """What pytest is told: the tests of this piece, without those inside that are another piece's.

        >>> rest, boxes = Piece("rest", ("tests",), 1), Piece("boxes", ("tests/boxes",), 1)
        >>> rest.words([rest, boxes])
        ['tests', '--deselect=tests/boxes']
        >>> boxes.words([rest, boxes])
        ['tests/boxes']
        """
        others = [test for piece in pieces if piece != self for test in piece.tests]
        inside = [test for test in others if any(is_inside(test, mine) for mine in self.tests)]
        return [*self.tests, *(f"--deselect={test}" for test in inside)]


def is_inside(test: str, outer: str) -> bool:
    """Whether a test, a file or a folder lies inside another one.

    >>> is_inside("tests/a/test_b.py::test_c", "tests/a"), is_inside("tests/ab", "tests/a")
    (True, False)
    """
    return any(test.startswith(outer + mark) for mark in ("/", "::", "["))


def _kills() -> Iterator[Piece]:
    test = "tests/fuzz/kills/test_random_kills.py::test_nothing_is_lost_doubled_or_stuck"
    for name in KILLED_NETWORKS:
        kills = {f"random_kills_{name}": 40}
        yield Piece(f"kills-{name}", (f"{test}[{name}]",), 10, measured=True, counts=kills)
    folder = "tests/runtime/kills"
    yield Piece("kills-driver", (f"{folder}/test_kill.py",), 10, counts={"kills_of_a_driver": 20})
    workers, starts = {"kills_of_a_worker": 20}, {"kills_of_a_start": 20, "zombies_fenced": 5}
    yield Piece("kills-worker", (f"{folder}/test_cluster.py",), 1, measured=True, counts=workers)
    yield Piece("kills-start", (folder,), 11, measured=True, counts=starts)


def _networks() -> Iterator[Piece]:
    file = "tests/boxes/networks/test_random_networks.py"
    for part in range(PARTS_OF_NETWORKS):
        test = f"{file}::test_many_networks[{part}]"
        yield Piece(f"networks-{part}", (test,), 15, counts={"networks_on_spark": 475})
    yield Piece("optimizer", ("tests/rewrite",), 15, measured=True, counts={"random_swaps": 2_000})
    yield Piece("boxes", ("tests/boxes",), 15, counts={"networks_on_spark": 100})


def _rows() -> Iterator[Piece]:
    test = "tests/fuzz/files/test_bad_files.py::test_the_same_with_many"
    for form, minutes in {"csv": 4, "json": 3, "parquet": 2}.items():
        counts = {f"fuzzed_rows_{form}": 3_400_000}
        yield Piece(f"rows-{form}", (f"{test}[{form}]",), minutes, measured=True, counts=counts)


def _corruption() -> Iterator[Piece]:
    file = "tests/fuzz/test_corruption.py"
    for way, case in {"never": "None", "every_train": "0.0", "sometimes": "0.2"}.items():
        test = f"{file}::test_damaged_checkpoints_are_refused_or_give_the_same_rows[{case}]"
        counts = {f"corruptions_by_readers_{way}": 1_500}
        yield Piece(f"corruption-readers-{way}", (test,), 7, measured=True, counts=counts)
    for part in range(PARTS_OF_RESTARTS):
        test = f"{file}::test_damaged_checkpoints_with_a_whole_restart[{part}]"
        restarts = {"corruptions_by_restart": 125}
        yield Piece(f"corruption-restarts-{part}", (test,), 3, measured=True, counts=restarts)


def _services() -> Iterator[Piece]:
    http = {"hostile_requests": 10_000, "clients": 2_000, "seconds_of_clients": 60}
    answers = {"standing_cases": 6_000, "followers_that_do_not_read": 1_000}
    files = ("tests/standing/test_exact.py", "tests/standing/test_followers.py")
    diffusion = {"kills_of_a_worker_with_a_diffused_join": 1}
    yield Piece("http", ("tests/fuzz/test_hostile_requests.py",), 3, measured=True, counts=http)
    yield Piece("standing-answers", files, 4, measured=True, counts=answers)
    yield Piece("standing", ("tests/standing",), 10)
    yield Piece("diffusion", ("tests/diffusion",), 10, counts=diffusion)


def _others() -> Iterator[Piece]:
    yield Piece("attaches", ("tests/runtime/test_seam.py",), 8, counts={"attaches": 100})
    yield Piece("runtime", ("tests/runtime", "tests/store"), 8, measured=True)
    yield Piece("linear_road", ("tests/linear_road", "tests/benchmarks"), 15)
    yield Piece("faults", FAULTS, 15, counts={"clock_jumps": 20, "fillings_of_the_disk": 20})
    yield Piece("fuzz", ("tests/fuzz",), 15)
    yield Piece("rest", ("tests",), 15)


def _all() -> Iterator[Piece]:
    for group in (_kills, _networks, _rows, _corruption, _services, _others):
        yield from group()


PIECES: dict[str, Piece] = {piece.name: piece for piece in _all()}
