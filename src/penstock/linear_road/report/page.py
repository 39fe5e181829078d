"""The page: what was run, where, and how it went, in one HTML file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from penstock.linear_road.report import charts
from penstock.linear_road.report.compare import best_trial
from penstock.linear_road.report.road_map import Road, draw
from penstock.store.durable import write_text

NAMES = ("toll notice", "accident alert", "balance", "daily expenditure", "travel time")
LIMITS = (5, 5, 5, 10, 30)
"""The five types of answers and the seconds within which each must leave (VLDB 2004, section 3.2)."""

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em;
  color: #222; }
table { border-collapse: collapse; margin: .8em 0; }
th, td { padding: .2em .7em; border-bottom: 1px solid #ddd; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } h2 { margin-top: 1.6em; }
.pass { color: #187a2f; font-weight: 600; }
.fail { color: #b3261e; font-weight: 600; } .wide { overflow-x: auto; font-size: 13px; }
.note { color: #666; font-size: 13px; }
img { max-width: 100%; } svg { width: 100%; font: 11px system-ui; }
.toll { fill: #2458c5; } .crash { fill: #000; }"""


def run_page(
    run: Mapping[str, Any],
    *,
    verdict: Mapping[str, Any] | None = None,
    road: Road | None = None,
    title: str = "Linear Road",
) -> str:
    """The page of a run.

    `run` is as in run.json, `verdict` as `lr validate --json` writes it, `road` from `read_road`.
    """
    return _page(
        title,
        [
            f"<p>{_outcome(run, verdict)}</p>",
            _facts(_run_facts(run)),
            "<h2>Answers</h2>",
            _answers(run, verdict),
            "<h2>Over time</h2>",
            *_plots(run.get("series", {})),
            *_map(road),
            "<h2>Machine and versions</h2>",
            _facts({**_ground(run), **_flat(run.get("config", {}))}),
        ],
    )


def rating_page(rating: Mapping[str, Any], title: str = "Linear Road: L-rating") -> str:
    """The page of a rating (rating.json): the trials in a table, plots of the trial that it rests on."""
    trial = best_trial(rating)
    plots = (
        [] if trial is None else [f"<h2>L = {trial['L']:g} over time</h2>", *_plots(trial.get("series", {}))]
    )
    waits = (
        [] if trial is None else ["<h2>Response times of it</h2>", _answers(trial, trial.get("validation"))]
    )
    shortened = "".join(f"<li>{escape(text)}</li>" for text in rating.get("what_was_shortened", []))
    return _page(
        title,
        [
            f"<p>{_rating_line(rating)}</p>",
            "<h2>Trials</h2>",
            _trials(rating.get("trials", [])),
            *waits,
            *plots,
            f"<h2>What this rating is not</h2><ul>{shortened}</ul>" if shortened else "",
            "<h2>Machine and versions</h2>",
            _facts({**_ground(rating), **_flat(rating.get("plan", {}))}),
        ],
    )


def write_page(file: Path, page: str) -> Path:
    """Write a page, whole or not at all."""
    write_text(file, page)
    return file


def _page(title: str, parts: Iterable[str]) -> str:
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def _mark(*, passed: bool, words: tuple[str, str] = ("PASS", "FAIL")) -> str:
    return f'<span class="{"pass" if passed else "fail"}">{words[0] if passed else words[1]}</span>'


def _outcome(run: Mapping[str, Any], verdict: Mapping[str, Any] | None) -> str:
    if not run.get("finished", True):
        return _mark(passed=False, words=("", "The run was stopped before its end."))
    if not run.get("valid", True):
        return _mark(passed=False, words=("", "The run is not valid: the driver fell behind."))
    if verdict is None:
        return "The answers have not been checked."
    return _mark(passed=verdict["passed"], words=("All answers hold.", "The answers do NOT hold."))


def _run_facts(run: Mapping[str, Any]) -> dict[str, Any]:
    given, cost, warm_up = run.get("input", {}), run.get("cost", {}), run.get("warm_up", {})
    rates = run.get("rates", {})
    figures = {
        "started": run.get("started"),
        "tuples": given.get("rows"),
        "expressways": given.get("xways"),
        "seconds of data": _span(given),
        "speed": run.get("speed"),
        "clock": run.get("clock"),
        "rows refused": run.get("dead_letters"),
        "warm-up, not scored (s)": warm_up.get("seconds"),
        "tuples/s in": rates.get("tuples_in_per_s", cost.get("tuples_in_per_s")),
        "answers/s out": rates.get("answers_per_s", cost.get("tuples_out_per_s")),
        "cores used": cost.get("cores"),
        "memory (MB)": cost.get("memory_mb"),
        "most backlog (s)": cost.get("backlog_s"),
    }
    return {name: value for name, value in figures.items() if value is not None}


def _span(given: Mapping[str, Any]) -> str | None:
    if given.get("t0") is None or given.get("t1") is None:
        return None
    return f"{given['t0']}..{given['t1'] - 1}"


def _ground(result: Mapping[str, Any]) -> dict[str, Any]:
    return {**result.get("machine", {}), **result.get("versions", {})}


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _facts(values: Mapping[str, Any]) -> str:
    rows = "".join(
        f'<tr><td>{escape(str(n))}</td><td class="n">{_cell(v)}</td></tr>' for n, v in values.items()
    )
    return f"<table>{rows}</table>"


def _cell(value: Any) -> str:
    """A value as text; None is a dash.

    >>> _cell(1234567), _cell(0.12345), _cell(None), _cell("<b>")
    ('1,234,567', '0.123', '-', '&lt;b&gt;')
    """
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return escape(str(value))
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".rstrip("0").rstrip(".")


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; the first column is text, the others numbers; markup is left as it is."""
    cells = "".join(f"<th{'' if i == 0 else ' class=n'}>{escape(name)}</th>" for i, name in enumerate(head))
    lines = "".join(f"<tr>{''.join(_td(i, value) for i, value in enumerate(row))}</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{lines}</table>"


def _td(column: int, value: Any) -> str:
    text = value if isinstance(value, str) and value.startswith("<span") else _cell(value)
    return f"<td{'' if column == 0 else ' class=n'}>{text}</td>"


def _answers(run: Mapping[str, Any], verdict: Mapping[str, Any] | None) -> str:
    """Answers by type: how many, and how long they took.

    With a verdict, also how many were expected and how many were right.
    """
    types = (verdict or {}).get("types") or {}
    judged = ("expected", "right", "wrong", "missing", "extra")
    times = ("late", "p50", "p95", "p99", "max")
    head = ["type", "answers", *(judged if types else ()), *times, "limit s", *([""] if types else [])]
    return _table(head, (_answer_row(run, types, kind, judged, times) for kind in range(len(NAMES))))


def _answer_row(
    run: Mapping[str, Any],
    types: Mapping[str, Any],
    kind: int,
    judged: Sequence[str],
    times: Sequence[str],
) -> list[Any]:
    checked = types.get(str(kind), {})
    waits = run.get("latency", {}).get(str(kind)) or {
        **checked.get("response", {}),
        "late": checked.get("late"),
    }
    got = run.get("answers", {}).get(str(kind), waits.get("answers", checked.get("got")))
    row = [f"{kind} {NAMES[kind]}", got]
    if types:
        row += [checked.get(name) for name in judged]
    row += [waits.get(name) for name in times] + [LIMITS[kind]]
    return [*row, _mark(passed=_holds(checked))] if types else row


def _holds(checked: Mapping[str, Any]) -> bool:
    """Whether the answers of a type passed; copies judged together have only counts."""
    return bool(
        checked.get("passed", not any(checked.get(name) for name in ("wrong", "missing", "extra", "late")))
    )


def _plots(series: Mapping[str, Any]) -> Iterator[str]:
    samples = series.get("samples", [])
    figures = (
        ("response time", charts.response_times(series)),
        ("rate", charts.rates(samples)),
        ("processor", charts.processor(samples)),
        ("backlog", charts.backlog(samples)),
    )
    for name, figure in figures:
        if figure is not None:
            yield f'<img alt="{name} over time" src="{charts.picture(figure)}">'


def _map(road: Road | None) -> Iterator[str]:
    if road is not None and road.minutes:
        yield "<h2>The road</h2>"
        yield draw(road)


def _rating_line(rating: Mapping[str, Any]) -> str:
    how = (
        f"confirmed by {rating['scored_minutes']:g} scored minutes"
        if rating.get("confirmed")
        else "not confirmed by a long run"
    )
    return (
        f"<b>L = {rating.get('rating', 0):g}</b> ({escape(str(rating.get('mode')))} mode, {how}), "
        f"{escape(str(rating.get('date', '')))}"
    )


def _trials(trials: Sequence[Mapping[str, Any]]) -> str:
    """All trials; response times of each type as p50 / p95 / p99 / max in seconds."""
    head = ["L", "tuples/s in", "out", *NAMES, "late", "wrong", "cores", "MB", "backlog s", ""]
    note = '<p class="note">Response times: p50 / p95 / p99 / max, in seconds.</p>'
    return f'<div class="wide">{_table(head, map(_trial, trials))}</div>{note}'


def _trial(trial: Mapping[str, Any]) -> list[Any]:
    cost, latency = trial.get("cost") or {}, trial.get("latency") or {}
    verdict = _mark(passed=bool(trial.get("pass")))
    if trial.get("void"):
        verdict = f'<span class="fail">VOID: {escape(str(trial["void"]))}</span>'
    elif trial.get("crashed"):
        verdict = f'<span class="fail">FAIL: crashed, {escape(str(trial["crashed"]))}</span>'
    return [
        f"{trial['L']:g}{' (confirming)' if trial.get('confirming') else ''}",
        cost.get("tuples_in_per_s"),
        cost.get("tuples_out_per_s"),
        *(_times(latency.get(str(kind))) for kind in range(len(NAMES))),
        trial.get("late"),
        trial.get("wrong"),
        cost.get("cores"),
        cost.get("memory_mb"),
        cost.get("backlog_s"),
        verdict,
    ]


def _times(waits: Mapping[str, Any] | None) -> str:
    """The percentiles of one type in one cell.

    >>> _times({"p50": 0.5, "p95": 1, "p99": 1.25, "max": None})
    '0.5 / 1 / 1.25 / -'
    """
    return " / ".join(_cell((waits or {}).get(name)) for name in ("p50", "p95", "p99", "max"))
