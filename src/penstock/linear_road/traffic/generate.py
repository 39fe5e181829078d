"""`penstock lr generate`: the input of a Linear Road run, for L expressways.

Idea: simulate each direction into a part (`finished_directions`), name the vehicles (`vehicles`), and merge
the parts into files in order of time (`merge`). The manifest is written last, so a directory with a
manifest is complete. The next run with the same plan recognises every finished step and keeps it. Arasu et
al., VLDB 2004, section 3.1 (input generation).
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from multiprocessing import get_context
from pathlib import Path
from typing import cast

import numpy as np
import xxhash

from penstock.linear_road.errors import GenerateError
from penstock.linear_road.rows.arrays import Int32s
from penstock.linear_road.rows.fields import TYPES
from penstock.linear_road.rows.inputs import MANIFEST, Format, Manifest
from penstock.linear_road.rows.partial_work import end_with_parent
from penstock.linear_road.traffic.direction import Direction, directions
from penstock.linear_road.traffic.finished_directions import PARTS, Part, is_whole, make_part, open_part
from penstock.linear_road.traffic.merge import Slice, cut, merge, write_rows
from penstock.linear_road.traffic.vehicles import STRIDE, name_vehicles
from penstock.store.durable import TEMPORARY, make_directory, whole_file, write_text

MODEL = 1
"""Goes up whenever the same seed gives other rows, so that parts of two models are never mixed."""

ACCIDENTS = "accidents.csv"
ACCIDENT_HEADER = "xway,dir,lane,pos,vid1,vid2,stopped,detected,cleared"
MOST_MINUTES, MOST_XWAYS = 180, 10_000
_PLAN = "plan.json"

Progress = Callable[[str, int, int], None]
"""Called with the step, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class TrafficPlan:
    """What to generate: everything the rows depend on."""

    xways: float
    minutes: int = 180
    seed: int = 1
    format: Format = "csv"
    model: int = MODEL

    def __post_init__(self) -> None:
        half = 2 * self.xways
        if not math.isfinite(half) or half != int(half) or not 1 <= half <= 2 * MOST_XWAYS:
            raise GenerateError(
                f"the number of expressways is {self.xways}",
                expected=f"a multiple of 0.5 from 0.5 to {MOST_XWAYS}",
            )
        if not 1 <= self.minutes <= MOST_MINUTES:
            raise GenerateError(f"the run is {self.minutes} minutes long", expected=f"1 to {MOST_MINUTES}")
        if not 0 <= self.seed < 2**63:
            raise GenerateError(f"the seed is {self.seed}", expected="a whole number from 0 to 2^63 - 1")
        if self.format not in ("csv", "parquet"):
            raise GenerateError(f"the format is {self.format!r}", expected="csv or parquet")

    @property
    def seconds(self) -> int:
        """How long the run is."""
        return 60 * self.minutes

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions to simulate."""
        return directions(self.xways)


def generate(
    out: Path,
    *,
    xways: float,
    minutes: int = 180,
    seed: int = 1,
    form: str = "csv",
    jobs: int = 1,
    progress: Progress = lambda _step, _done, _of: None,
) -> Manifest:
    """Generate the input of `xways` expressways into the directory `out` and return its manifest.

    The rows depend on `xways`, `minutes` and `seed` alone, not on `jobs` (processes). A stopped run resumes
    where it was; a finished directory is left unchanged.
    """
    plan = TrafficPlan(float(xways), minutes, seed, cast("Format", form))
    if jobs < 1:
        raise GenerateError(f"the number of jobs is {jobs}", expected="at least 1")
    out = Path(out)
    finished = _finished(out, plan)
    if finished is not None:
        return finished
    _begin(out, plan)
    _simulate_all(out, plan, jobs, progress)
    _name_all(out, plan)
    slices = _merge_all(out, plan, jobs, progress)
    _write_accidents(out, plan)
    manifest = _manifest(out, plan, slices)
    write_text(out / MANIFEST, json.dumps(manifest, indent=2) + "\n")
    # After the manifest: a kill in between leaves a finished input with some rubbish, never half an input.
    shutil.rmtree(out / PARTS)
    return manifest


def _finished(out: Path, plan: TrafficPlan) -> Manifest | None:
    """The manifest, if `out` already holds this complete plan."""
    file = out / MANIFEST
    if not file.is_file():
        return None
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        same = all(manifest[name] == value for name, value in asdict(plan).items())
        whole = all((out / name).is_file() for name in [*manifest["files"], ACCIDENTS])
    except (ValueError, KeyError, TypeError):
        same = whole = False
    if not (same and whole):
        raise GenerateError(
            f"{out} already holds another or a damaged input", hint="choose another directory or remove it"
        )
    return cast("Manifest", manifest)


def _begin(out: Path, plan: TrafficPlan) -> None:
    """Make the directory, or recognise one that the same plan has begun."""
    if out.exists() and not out.is_dir():
        raise GenerateError(f"{out} is a file", expected="a directory to write to")
    marker = out / PARTS / _PLAN
    if marker.is_file():
        if json.loads(marker.read_text(encoding="utf-8")) != asdict(plan):
            raise GenerateError(
                f"{out} holds the beginning of another run",
                hint=f"remove {out / PARTS} and the rows-* files first",
            )
    elif out.is_dir() and any(out.glob("rows-*")):
        raise GenerateError(
            f"{out} holds row files of unknown origin", hint="choose another directory or remove them"
        )
    else:
        make_directory(marker.parent)
        write_text(marker, json.dumps(asdict(plan)))
    # A killed run may have left files under their temporary names.
    for left_over in [*out.glob(f".*{TEMPORARY}"), *(out / PARTS).glob(f".*{TEMPORARY}")]:
        left_over.unlink()


def _simulate_all(out: Path, plan: TrafficPlan, jobs: int, progress: Progress) -> None:
    total = plan.minutes * len(plan.directions)
    missing = [direction for direction in plan.directions if not is_whole(out, direction)]
    done = total - plan.minutes * len(missing)
    progress("simulate", done, total)

    def tick(minutes: int = 1) -> None:
        nonlocal done
        done += minutes
        progress("simulate", done, total)

    calls = [(out, direction, plan.seconds, plan.seed) for direction in missing]
    # Here every minute moves the progress bar; other processes report only whole directions.
    if min(jobs, len(calls)) <= 1:
        for call in calls:
            make_part(*call, tick)
    else:
        for _ in _in_processes(jobs, make_part, calls):
            tick(plan.minutes)


def _each(jobs: int, work: Callable[..., None], calls: Sequence[tuple[object, ...]]) -> Iterator[None]:
    """Run calls here if one process is enough, otherwise in other processes."""
    if min(jobs, len(calls)) > 1:
        yield from _in_processes(jobs, work, calls)
    else:
        for call in calls:
            work(*call)
            yield


def _in_processes(
    jobs: int, work: Callable[..., None], calls: Sequence[tuple[object, ...]]
) -> Iterator[None]:
    """Run calls in other processes; yields as each one finishes."""
    # Spawn a fresh interpreter instead of forking: Arrow's threads do not survive a fork.
    workers = min(jobs, len(calls))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        futures = [pool.submit(work, *call) for call in calls]
        try:
            for future in as_completed(futures):
                future.result()
                yield
        finally:
            pool.shutdown(cancel_futures=True)


def _vid_path(out: Path, direction: Direction) -> Path:
    return out / PARTS / f"x{direction.xway:04d}-d{direction.dir}.vid.npy"


def _name_all(out: Path, plan: TrafficPlan) -> None:
    """Name the vehicles of all directions. This is cheap, so an interrupted run simply repeats it."""
    times = [open_part(out, direction).times for direction in plan.directions]
    for direction, vids in zip(plan.directions, name_vehicles(plan.directions, times), strict=True):
        with whole_file(_vid_path(out, direction)) as path, path.open("wb") as file:
            np.save(file, vids)


@lru_cache(maxsize=1)
def _open_all(out: Path, plan: TrafficPlan) -> tuple[list[Part], list[Int32s]]:
    parts = [open_part(out, direction) for direction in plan.directions]
    return parts, [np.load(_vid_path(out, direction)) for direction in plan.directions]


def _merge_one(out: Path, plan: TrafficPlan, span: Slice) -> None:
    parts, vids = _open_all(out, plan)
    write_rows(merge(span, plan.directions, parts, vids), out / span.file_name(plan.format), plan.format)


def _merge_all(out: Path, plan: TrafficPlan, jobs: int, progress: Progress) -> tuple[Slice, ...]:
    _open_all.cache_clear()  # a directory may have been written anew in this process
    parts, _ = _open_all(out, plan)
    slices = cut(np.sum([part.counts.sum(axis=1) for part in parts], axis=0))
    missing = [span for span in slices if not (out / span.file_name(plan.format)).is_file()]
    done = len(slices) - len(missing)
    progress("merge", done, len(slices))
    for _ in _each(jobs, _merge_one, [(out, plan, span) for span in missing]):
        done += 1
        progress("merge", done, len(slices))
    return slices


def _write_accidents(out: Path, plan: TrafficPlan) -> None:
    parts, vids = _open_all(out, plan)
    rows = [
        (a.xway, a.dir, a.lane, a.pos, names[a.trip1], names[a.trip2], a.stopped, a.detected, a.cleared)
        for part, names in zip(parts, vids, strict=True)
        for a in part.accidents
    ]
    lines = [",".join(map(str, row)) for row in sorted(rows, key=lambda row: (row[0], row[7]))]
    write_text(out / ACCIDENTS, "\n".join([ACCIDENT_HEADER, *lines]) + "\n")


def _manifest(out: Path, plan: TrafficPlan, slices: tuple[Slice, ...]) -> Manifest:
    parts, vids = _open_all(out, plan)
    files = [span.file_name(plan.format) for span in slices]
    counts = np.sum([part.counts.sum(axis=0) for part in parts], axis=0).tolist()
    # QIDs interleave the directions, so the direction with the most requests sets the limit for all.
    requests = max(int(part.requests_before[-1]) for part in parts)
    trips, vehicles = sum(map(len, vids)), len(np.unique(np.concatenate(vids)))
    return {
        "kind": "linear-road-input",
        "version": _version(),
        "xways": plan.xways,
        "minutes": plan.minutes,
        "seed": plan.seed,
        "format": plan.format,
        "model": plan.model,
        "files": files,
        "rows": sum(counts),
        "counts": {str(kind): count for kind, count in zip(TYPES, counts, strict=True)},
        "vehicles": vehicles,
        "trips": trips,
        "second_trips": trips - vehicles,
        "accidents": sum(len(part.accidents) for part in parts),
        "vid_limit": math.ceil(plan.xways) * STRIDE,
        "qid_limit": requests * len(parts),
        "hash_kind": "xxh3_128 of the bytes of all row files in their order",
        "hash": _hash([out / name for name in files]),
    }


def _hash(files: list[Path]) -> str:
    digest = xxhash.xxh3_128()
    for path in files:
        with path.open("rb") as file:
            while block := file.read(1 << 24):
                digest.update(block)
    return digest.hexdigest()


def _version() -> str:
    try:
        return installed_version("penstock")
    except PackageNotFoundError:
        return "unknown"
