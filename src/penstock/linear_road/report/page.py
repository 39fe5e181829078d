"""The page: what was run, where, and how it went, in one HTML file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import cast

from penstock.linear_road.report import charts
from penstock.linear_road.report.compare import best_trial
from penstock.linear_road.report.json_values import JsonObject, is_number, part, parts
from penstock.linear_road.report.road_map import Road, draw
from penstock.linear_road.report.validity import doubt
from penstock.linear_road.run.record import Series
from penstock.linear_road.run.response_times import LIMITS, NAMES
from penstock.model.pictures.notebook import to_html
from penstock.model.writing.network import Network
from penstock.store.durable import write_text

_JUDGED = ("expected", "right", "wrong", "missing", "extra")
_PERCENTILES = ("p50", "p95", "p99", "max")

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em;
  color: #222; }
table { border-collapse: collapse; margin: .8em 0; }
th, td { padding: .2em .6em; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
td > span { display: inline-block; white-space: normal; width: max-content; max-width: 18em; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } h2 { margin-top: 1.6em; }
.pass { color: #187a2f; font-weight: 600; }
.fail { color: #b3261e; font-weight: 600; } .wide { overflow-x: auto; font-size: 14px; }
.note { color: #666; font-size: 13px; }
img { max-width: 100%; } #when { width: 24em; max-width: 60%; vertical-align: middle; }
#road { width: 100%; font: 11px system-ui; }
#fit:checked ~ .penstock-network svg { width: 100%; height: auto; }
.toll { fill: #2458c5; } .crash { fill: #000; }"""


def run_page(
    run: JsonObject,
    *,
    verdict: JsonObject | None = None,
    road: Road | None = None,
    network: Network | None = None,
    title: str = "Linear Road",
) -> str:
    """The page of a run.

    `run` is as in run.json, `verdict` as `lr validate --json` writes it, `road` from `read_road`. `network`
    is drawn as `penstock draw` and the console do it.
    """
    return _page(
        title,
        [
            f"<div>{_outcome(run, verdict)}</div>",
            _facts(_run_facts(run)),
            "<h2>Answers</h2>",
            _answers(run, verdict),
            "<h2>Over time</h2>",
            *_plots(run),
            *_map(road),
            *_network(network),
            "<h2>Machine and versions</h2>",
            _facts({**_ground(run), **_flat(part(run, "config"))}),
        ],
    )


def rating_page(rating: JsonObject, title: str = "Linear Road: L-rating") -> str:
    """The page of a rating (rating.json): the trials in a table, plots of the trial that it rests on."""
    shortened = "".join(f"<li>{escape(str(text))}</li>" for text in parts(rating, "what_was_shortened"))
    return _page(
        title,
        [
            f"<p>{_rating_line(rating)}</p>",
            "<h2>Trials</h2>",
            _trials(parts(rating, "trials")),
            *_best(best_trial(rating)),
            f"<h2>What this rating is not</h2><ul>{shortened}</ul>" if shortened else "",
            "<h2>Machine and versions</h2>",
            _facts({**_ground(rating), **_flat(part(rating, "plan"))}),
        ],
    )


def _best(trial: JsonObject | None) -> Iterator[str]:
    """The trial that a rating rests on, in detail."""
    if trial is not None:
        yield f"<h2>Response times at L = {_cell(trial.get('L'))}</h2>"
        yield _answers(trial, part(trial, "validation"))
        yield f"<h2>L = {_cell(trial.get('L'))} over time</h2>"
        yield from _plots(trial)


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


def _outcome(run: JsonObject, verdict: JsonObject | None) -> str:
    if not run.get("finished", True):
        return _mark(passed=False, words=("", "The run was stopped before its end."))
    times = doubt(run)
    return f"{_answers_outcome(verdict)}{'' if times is None else f'<p>{escape(times)}</p>'}"


def _answers_outcome(verdict: JsonObject | None) -> str:
    if verdict is None:
        return "The answers have not been checked."
    return _mark(passed=bool(verdict["passed"]), words=("All answers hold.", "The answers do NOT hold."))


def _run_facts(run: JsonObject) -> JsonObject:
    given, cost, warm_up, rates = (part(run, name) for name in ("input", "cost", "warm_up", "rates"))
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
    return _flat(figures)


def _span(given: JsonObject) -> str | None:
    begin, end = given.get("t0"), given.get("t1")
    return f"{begin}..{end - 1}" if is_number(begin) and is_number(end) else None


def _ground(result: JsonObject) -> JsonObject:
    return {**part(result, "machine"), **part(result, "versions")}


def _flat(values: JsonObject) -> JsonObject:
    """Without what is not known."""
    return {name: value for name, value in values.items() if value is not None}


def _facts(values: JsonObject) -> str:
    rows = "".join(
        f'<tr><td>{escape(str(n))}</td><td class="n">{_cell(v)}</td></tr>' for n, v in values.items()
    )
    return f"<table>{rows}</table>"


def _cell(value: object) -> str:
    """A value as text; None is a dash.

    >>> _cell(1234567), _cell(0.12345), _cell(None), _cell("<b>")
    ('1,234,567', '0.123', '-', '&lt;b&gt;')
    """
    if value is None:
        return "-"
    if not is_number(value):
        return escape(str(value))
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".rstrip("0").rstrip(".")


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; the first column is text, the others numbers; markup is left as it is."""
    cells = "".join(f"<th{'' if i == 0 else ' class=n'}>{escape(name)}</th>" for i, name in enumerate(head))
    lines = "".join(f"<tr>{''.join(_td(i, value) for i, value in enumerate(row))}</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{cells}</tr>{lines}</table></div>'


def _td(column: int, value: object) -> str:
    text = value if isinstance(value, str) and value.startswith("<span") else _cell(value)
    return f"<td{'' if column == 0 else ' class=n'}>{text}</td>"


def _answers(run: JsonObject, verdict: JsonObject | None) -> str:
    """Answers by type: how many, and how long they took.

    With a verdict, also how many were expected and how many were right.
    """
    types = part(verdict or {}, "types")
    head = ["type", "answers", *(_JUDGED if types else ()), "late", *_PERCENTILES, "limit s"]
    rows = (_answer_row(run, types, kind) for kind in range(len(NAMES)))
    return _table([*head, ""] if types else head, rows)


def _answer_row(run: JsonObject, types: JsonObject, kind: int) -> list[object]:
    checked = part(types, str(kind))
    # A run without a clock has no response times of its own. The verdict's come from the answers' Emit.
    waits = part(part(run, "latency"), str(kind)) or {
        **part(checked, "response"),
        "late": checked.get("late"),
    }
    answers = part(run, "answers").get(str(kind), waits.get("answers", checked.get("got")))
    row: list[object] = [f"{kind} {NAMES[kind]}", answers]
    if types:
        row += [checked.get(name) for name in _JUDGED]
    row += [waits.get(name) for name in ("late", *_PERCENTILES)] + [LIMITS[kind]]
    return [*row, _mark(passed=_holds(checked))] if types else row


def _holds(checked: JsonObject) -> bool:
    """Whether the answers of a type passed; copies judged together have only counts."""
    return bool(
        checked.get("passed", not any(checked.get(name) for name in ("wrong", "missing", "extra", "late")))
    )


def _plots(run: JsonObject) -> Iterator[str]:
    series = cast("Series", part(run, "series"))
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


def _network(network: Network | None) -> Iterator[str]:
    if network is not None:
        yield "<h2>The network</h2>"
        yield '<input type="checkbox" id="fit" checked> <label for="fit">fitted to the page</label>'
        yield to_html(network)


def _rating_line(rating: JsonObject) -> str:
    how = (
        f"confirmed by {_cell(rating['scored_minutes'])} scored minutes"
        if rating.get("confirmed")
        else "not confirmed by a long run"
    )
    return (
        f"<b>L = {_cell(rating.get('rating', 0))}</b> ({escape(str(rating.get('mode')))} mode, {how}), "
        f"{escape(str(rating.get('date', '')))}"
    )


def _trials(trials: Sequence[JsonObject]) -> str:
    """All trials; response times of each type as p50 / p95 / p99 / max in seconds."""
    # The outcome comes second: the table is wide, and its end may be out of sight.
    head = ["L", "", "tuples/s in", "out", *NAMES, "late", "wrong", "cores", "MB", "backlog s"]
    note = '<p class="note">Response times: p50 / p95 / p99 / max, in seconds.</p>'
    return f"{_table(head, map(_trial, trials))}{note}"


def _trial(trial: JsonObject) -> list[object]:
    cost, latency = part(trial, "cost"), part(trial, "latency")
    verdict = _mark(passed=bool(trial.get("pass")))
    if trial.get("void"):
        verdict = f'<span class="fail">VOID: {escape(str(trial["void"]))}</span>'
    elif trial.get("crashed"):
        verdict = f'<span class="fail">FAIL: crashed, {escape(str(trial["crashed"]))}</span>'
    return [
        f"{_cell(trial['L'])}{' (confirming)' if trial.get('confirming') else ''}",
        verdict,
        cost.get("tuples_in_per_s"),
        cost.get("tuples_out_per_s"),
        *(_times(part(latency, str(kind))) for kind in range(len(NAMES))),
        trial.get("late"),
        trial.get("wrong"),
        cost.get("cores"),
        cost.get("memory_mb"),
        cost.get("backlog_s"),
    ]


def _times(waits: JsonObject) -> str:
    """The percentiles of one type in one cell.

    >>> _times({"p50": 0.5, "p95": 1, "p99": 1.25, "max": None})
    '0.5 / 1 / 1.25 / -'
    """
    return " / ".join(_cell(waits.get(name)) for name in _PERCENTILES)
