"""The experiments of the PSoup paper (PE1 to PE9) on our structures, beside the claims of the paper.

There is no Spark here. Compared are the ways to keep results (NoMat, PSoup-P, PSoup-C), with and without the
predicate index. PE7 and PE8 use Linear Road reports where the paper had freeway sensors. Plots go to
docs/img/standing.

Figure: milliseconds of an invocation, tuples a second on one core, bytes stored; and which claims of the
        paper hold here.
Time:   about 4 minutes; --quick about 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.common.command_line import options
from benchmarks.common.results import recording
from benchmarks.common.tables import show
from benchmarks.standing.paper_plots import plot
from benchmarks.standing.paper_streams import (
    DOMAIN,
    REPORTS,
    SCHEMA,
    TRAIN,
    filled,
    response,
    road,
    span,
    tuples,
    window_of,
)
from penstock.model.types import Schema
from penstock.standing.answers.joins import Candidates, JoinBounds, JoinTask, ProbeOrder, join
from penstock.standing.answers.query_engine import QueryEngine
from penstock.standing.answers.results import MatchedPositions, looked_up
from penstock.standing.language.language import parse
from penstock.standing.language.query import StandingQuery, StreamInfo
from penstock.standing.language.select_clause import joined_schema
from penstock.standing.stems.block import Block, make_blocks
from penstock.standing.stems.data_stem import BlockRange

MODES = ("NoMat", "P", "C")


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--only", default="", help="for example PE1,PE5")
    chosen = parser.parse_args()
    wanted = [name for name in chosen.only.split(",") if name] or list(EXPERIMENTS)
    with recording("standing-paper", chosen, train=TRAIN, domain=DOMAIN) as record:
        record.figures = {}
        for name in wanted:
            begun = time.perf_counter()
            title, experiment = EXPERIMENTS[name](chosen)
            seconds = time.perf_counter() - begun
            record.figures[name] = {"title": title, "seconds": seconds, **experiment}
            show(f"{name}: {title}", experiment["rows"], experiment["verdict"])
            if not chosen.quick:
                plot(name, title, experiment)
    return record.exit_code


# -- response time


def windows(
    chosen: argparse.Namespace,
    factor: Callable[[Any], str],
    make: Any = tuples,
    schema: Schema = SCHEMA,
    columns: str = "k, a, b",
) -> list[dict[str, Any]]:
    """Milliseconds of an invocation for each window and mode; the largest window is retained."""
    sizes = [1_000, 10_000, 50_000] if chosen.quick else [1_000, 10_000, 100_000, 1_000_000]
    rng = np.random.default_rng(chosen.seed)
    factors = [factor(rng) for _ in range(8)]
    rows = []
    for size in sizes:
        row: dict[str, Any] = {"window": size}
        for mode in MODES:
            texts = [f"SELECT {columns} FROM r WHERE {f} {window_of(size)}" for f in factors]
            engine, handles = filled(texts, mode, sizes[-1], chosen.seed, make, schema)
            row[mode] = response(engine, handles)
            row["rows"] = engine.invoke(handles[0]).num_rows
        rows.append(row)
    return rows


def pe1(chosen: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    rows = windows(chosen, lambda rng: f"k = {int(rng.integers(0, DOMAIN))}")
    last = rows[-1]
    verdict = _said(
        ("NoMat is worst at the largest window", last["NoMat"] == max(last[m] for m in MODES)),
        ("all rise with the window", all(last[m] > rows[0][m] for m in MODES)),
        ("C beats P by orders of magnitude", last["P"] > 10 * last["C"]),
    )
    return "response time over window, equality", _curves(
        rows, "window", "window, tuples", "ms per invocation", verdict
    )


def pe2(chosen: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    # PE1 once more, so that both are taken at the same time.
    equal = windows(chosen, lambda rng: f"k = {int(rng.integers(0, DOMAIN))}")[-1]
    rows = windows(chosen, lambda rng: span(rng, 0.01, "k"))
    last = rows[-1]
    verdict = _said(
        ("NoMat and C are slower than in PE1", last["NoMat"] > equal["NoMat"] and last["C"] > equal["C"]),
        ("P about unchanged (within 1.5x)", 2 / 3 < last["P"] / equal["P"] < 1.5),
        ("NoMat is worst", last["NoMat"] == max(last[m] for m in MODES)),
        ("P and C are comparable (within 3x)", 1 / 3 < last["P"] / last["C"] < 3),
    )
    return "response time over window, interval of 1 %", _curves(
        rows, "window", "window, tuples", "ms per invocation", verdict
    )


def pe3(chosen: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    sizes = [100, 300] if chosen.quick else [200, 500, 1_000, 2_000]
    rows = []
    for size in sizes:
        row: dict[str, Any] = {"window": size}
        for mode in MODES:
            engine, _ = filled([], mode, 0, chosen.seed)
            few = f"r.a < {DOMAIN // 10} AND s.b < {DOMAIN // 10}"
            text = f"SELECT r.a, s.b FROM r, s WHERE r.k < s.k AND {few} {window_of(size)}"
            handle = engine.register(text, mode=mode).handle
            for first in range(0, 2 * sizes[-1], 1000):
                engine.insert("r", tuples(1000, chosen.seed, first))
                engine.insert("s", tuples(1000, chosen.seed, first, "ss"))
            row[mode] = response(engine, [handle])
            row["rows"] = engine.invoke(handle).num_rows
        rows.append(row)
    last = rows[-1]
    verdict = _said(
        ("NoMat is worst", last["NoMat"] == max(last[m] for m in MODES)),
        ("NoMat by orders of magnitude", last["NoMat"] > 10 * last["C"]),
        ("P about one order worse than C", 4 < last["P"] / last["C"] < 30),
        (
            "the result grows with the square of the window",
            0.5 < last["rows"] / rows[0]["rows"] / (last["window"] / rows[0]["window"]) ** 2 < 2,
        ),
    )
    return "response time, inequality join of two streams", _curves(
        rows, "window", "window of each stream, tuples", "ms per invocation", verdict, log_x=False
    )


def pe4(chosen: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    size = 20_000 if chosen.quick else 200_000
    rng = np.random.default_rng(chosen.seed)
    rows = []
    for count in range(1, 6):
        row: dict[str, Any] = {"predicates": count}
        texts = []
        for _ in range(8):
            factors = " AND ".join(span(rng, 0.3, column) for column in SCHEMA.names[:count])
            texts.append(f"SELECT k, a, b FROM r WHERE {factors} {window_of(size)}")
        for mode in MODES:
            engine, handles = filled(texts, mode, size, chosen.seed)
            row[mode] = response(engine, handles)
            row["rows"] = engine.invoke(handles[0]).num_rows
        rows.append(row)
    first, last = rows[0], rows[-1]
    verdict = _said(
        ("NoMat rises with the number of predicates", last["NoMat"] > first["NoMat"]),
        ("P and C fall", last["P"] < first["P"] and last["C"] < first["C"]),
        ("at 1 predicate P beats C", first["P"] < first["C"]),
        ("C overtakes P as predicates are added", last["C"] < last["P"]),
    )
    return "response time over the number of interval predicates", _curves(
        rows, "predicates", "interval predicates", "ms per invocation", verdict, log_x=False
    )


# -- data rate


def rates(
    chosen: argparse.Namespace, make: Any, schema: Schema, factor: Callable[[Any], str], window: int
) -> list[dict[str, Any]]:
    """Tuples a second that one core takes, over the number of standing query clauses."""
    counts = [10, 100] if chosen.quick else [10, 100, 1_000, 10_000]
    rows = []
    for count in counts:
        rng = np.random.default_rng(chosen.seed)
        infos = {"r": StreamInfo("r", schema, keep=1 << 50)}
        texts = [
            parse(f"SELECT * FROM r WHERE {factor(rng)} {window_of(window)}", infos) for _ in range(count)
        ]
        row: dict[str, Any] = {"SQCs": count}
        for mode in ("P", "C"):
            for indexed in (True, False):
                row[mode + ("+index" if indexed else "")] = _rate(
                    texts, mode, make, schema, chosen.seed, indexed=indexed, window=window
                )
        rows.append(row)
    return rows


def _rate(
    texts: list[Any], mode: str, make: Any, schema: Schema, seed: int, *, indexed: bool, window: int
) -> float:
    engine, _ = filled(texts, mode, 0, seed, make, schema)
    size = 4096
    full = min(window, 100_000) // size + 1  # trains that fill the window before the clock runs
    trains = [make(size, seed, first) for first in range(0, (full + 64) * size, size)]
    for train in trains[:full]:
        engine.insert("r", train)
    done, begun = 0, time.perf_counter()
    for train in trains[full:]:
        if indexed:
            engine.insert("r", train)
        else:
            _insert_without_index(engine, train, schema)
        done += size
        if time.perf_counter() - begun > 1.0 and done >= size:
            break
    return done / (time.perf_counter() - begun)


def _insert_without_index(engine: QueryEngine, train: pa.Table, schema: Schema) -> None:
    """Every conjunction looks at every tuple: what the index saves."""
    blocks: list[Block] = make_blocks(train, schema, None)
    for block in blocks:
        for slot, conjunction in engine.query_stem.live("r").items():
            block.late[slot] = block.scan(conjunction)
    engine.insert_blocks("r", blocks)


def _rate_verdict(rows: list[dict[str, Any]]) -> str:
    last, first = rows[-1], rows[0]
    series = ("P+index", "P", "C+index", "C")
    return _said(
        ("P with index is best", last["P+index"] == max(last[s] for s in series)),
        ("about an order over P without", last["P+index"] > 5 * last["P"]),
        ("and more over C", last["P+index"] > 5 * last["C+index"]),
        ("the index makes no visible difference for C (within 1.5x)", last["C+index"] < 1.5 * last["C"]),
        (
            "its gain grows with the number of SQCs",
            last["P+index"] / last["P"] > first["P+index"] / first["P"],
        ),
    )


def pe5(chosen: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    rows = rates(
        chosen, tuples, SCHEMA, lambda rng: f"{span(rng, 0.03, 'k')} AND {span(rng, 0.03, 'a')}", 100_000
    )
    return "data rate over the number of SQCs", _curves(
        rows, "SQCs", "standing query clauses", "tuples/s, one core", _rate_verdict(rows)
    )


# -- composite tuples


def pe6(chosen: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """One composite of many tuples against one struct for each: s is probed with n tuples of r."""
    counts = [10, 100] if chosen.quick else [10, 100, 1_000, 5_000]
    kinds = {
        "eq-ineq": "r.k = s.k AND r.a < s.a",
        "ineq-eq": "r.a < s.a AND r.k = s.k",
        "ineq-ineq": "r.a < s.a AND r.b < s.b",
    }
    infos = {name: StreamInfo(name, SCHEMA, keep=1 << 50) for name in ("r", "s")}
    other = _candidates(tuples(2_000, chosen.seed, 0, "ss"))
    rows = []
    for count in counts:
        row: dict[str, Any] = {"hybrids": count}
        mine = tuples(count, chosen.seed)
        for kind, where in kinds.items():
            query = parse(f"SELECT r.a FROM r, s WHERE {where}", infos)
            joined = joined_schema(query.parts, infos)
            probe = partial(_probe, query, joined, other)
            row[f"{kind} composite"] = _seconds(partial(_probe_table, probe, mine))
            singles = [_candidates(mine.slice(i, 1)) for i in range(min(count, 200))]
            each = _seconds(partial(probe, singles)) / len(singles)
            row[f"{kind} separate"] = each * count  # beyond 200 structs: 200 measured, the rest by proportion
        rows.append(row)
    last = rows[-1]
    ratio = {kind: last[f"{kind} separate"] / last[f"{kind} composite"] for kind in kinds}
    verdict = _said(
        (
            f"eq-ineq: the composite is faster (here {ratio['eq-ineq']:.0f}x, paper about 2x)",
            ratio["eq-ineq"] > 1.5,
        ),
        (f"ineq-eq: the composite wins (here {ratio['ineq-eq']:.0f}x)", ratio["ineq-eq"] > 1),
        (f"ineq-ineq: the composite loses (here {ratio['ineq-ineq']:.1f}x)", ratio["ineq-ineq"] < 1),
    )
    return "composite tuples against separate ones", _curves(
        rows, "hybrids", "hybrid structs", "seconds", verdict
    )


def _candidates(table: pa.Table) -> Candidates:
    pieces: MatchedPositions = looked_up(
        [BlockRange(b, 0, b.rows) for b in make_blocks(table, SCHEMA, None)],
        [(0, parse("SELECT k FROM r", {"r": StreamInfo("r", SCHEMA)}).branches[0].parts[0])],
    )
    return Candidates.of(pieces, SCHEMA)


def _probe(query: StandingQuery, joined: Schema, other: Candidates, probes: list[Candidates]) -> None:
    for mine in probes:
        task = JoinTask(query.branches[0], query.parts, [mine, other], joined, JoinBounds(1 << 40))
        join(task, 0, ProbeOrder())


def _probe_table(probe: Callable[[list[Candidates]], None], table: pa.Table) -> None:
    """Making one composite of all tuples is part of what it costs."""
    probe([_candidates(table)])


def _seconds(act: Callable[[], Any]) -> float:
    act()
    begun, rounds = time.perf_counter(), 0
    while time.perf_counter() - begun < 0.1:
        act()
        rounds += 1
    return (time.perf_counter() - begun) / rounds


# -- Linear Road reports


def pe7(chosen: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    def factor(rng: Any) -> str:
        return f"spd < {int(rng.integers(15, 30))} AND seg = {int(rng.integers(0, 100))}"

    rows = windows(chosen, factor, road, REPORTS, "vid, spd")
    last = rows[-1]
    verdict = _said(
        ("C is best", last["C"] == min(last[m] for m in MODES)),
        ("NoMat is worst", last["NoMat"] == max(last[m] for m in MODES)),
    )
    return "Linear Road reports: response time over window", _curves(
        rows, "window", "window, tuples", "ms per invocation", verdict
    )


def pe8(chosen: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    def factor(rng: Any) -> str:
        low = int(rng.integers(0, 90))
        segments = f"seg BETWEEN {low} AND {low + 4}"
        return f"spd < {int(rng.integers(15, 40))} AND {segments} AND lane = {int(rng.integers(0, 5))}"

    rows = []
    for window in (10_000, 200_000):
        rows += [{"window": window, **row} for row in rates(chosen, road, REPORTS, factor, window)]
    small = [row for row in rows if row["window"] == 10_000]
    large = [row for row in rows if row["window"] == 200_000]
    crossing = [small[0]["C"] > small[0]["P"], small[-1]["C"] > small[-1]["P"]]
    verdict = (
        _rate_verdict(large)
        + "; "
        + _said(("small window: C and P without index cross", crossing[0] != crossing[1]))
    )
    curves = _curves(large, "SQCs", "standing query clauses", "tuples/s, one core", verdict)
    return "Linear Road reports: data rate over the number of SQCs", {**curves, "rows": rows}


# -- storage


def pe9(chosen: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    count, queries = (50_000, 200) if chosen.quick else (500_000, 2_000)
    rows: list[dict[str, Any]] = []
    for share in (0.001, 0.01, 0.1):
        rng = np.random.default_rng(chosen.seed)
        texts = [
            f"SELECT k FROM r WHERE {span(rng, share, 'k')} {window_of(count // 10)}" for _ in range(queries)
        ]
        for mode in MODES:
            engine, _ = filled(texts, mode, count, chosen.seed)
            held = engine.stored()
            rows.append({"selectivity": share, "mode": mode, **held, "total": sum(held.values())})
    by = {(r["selectivity"], r["mode"]): r["total"] for r in rows}
    verdict = _said(
        *(
            (f"at {share}: NoMat < C < P", by[share, "NoMat"] < by[share, "C"] < by[share, "P"])
            for share in (0.001, 0.01, 0.1)
        )
    )
    return "storage", {
        "rows": rows,
        "x": "",
        "verdict": verdict,
        "x_label": "",
        "y_label": "bytes",
        "log_x": False,
    }


# -- pictures and verdicts


def _said(*claims: tuple[str, bool]) -> str:
    return "; ".join(f"{text}: {'holds' if held else 'does NOT hold here'}" for text, held in claims)


def _curves(
    rows: list[dict[str, Any]], x: str, x_label: str, y_label: str, verdict: str, *, log_x: bool = True
) -> dict[str, Any]:
    return {"rows": rows, "x": x, "x_label": x_label, "y_label": y_label, "verdict": verdict, "log_x": log_x}


EXPERIMENTS = {
    f"PE{number}": run for number, run in enumerate((pe1, pe2, pe3, pe4, pe5, pe6, pe7, pe8, pe9), 1)
}

if __name__ == "__main__":
    sys.exit(main())
