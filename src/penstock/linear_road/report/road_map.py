"""A map of the road: segments coloured by speed, tolls and accidents written on them, minute by minute.

Idea: the input says where a car was and how fast it went. The answers name a car and a second, and say what
it was told. Joined, they give the mean speed, the toll quoted and the accidents announced for each
road segment and minute. The map is one SVG. A few lines of script in the page repaint it for another minute.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypedDict

import duckdb

from penstock.linear_road.rows.fields import COLUMNS, SEGMENTS
from penstock.linear_road.rows.inputs import open_input

MOST_XWAYS = 4
"""So many expressways fit on a page."""

_LEFT, _WIDTH, _HEIGHT, _STEP = 62, 9, 16, 62
_NOBODY = "#e8e8e8"

CARS = """
CREATE TEMP TABLE cars AS SELECT VID AS vid, Time AS time, Spd AS spd, XWay AS xway, Dir AS dir, Seg AS seg
FROM {rows} WHERE Type = 0 AND XWay < {xways} AND Dir BETWEEN 0 AND 1 AND Seg BETWEEN 0 AND 99
    AND Time BETWEEN 0 AND 10799"""

NOTICES = """
CREATE TEMP TABLE notices AS SELECT column0 AS type, CASE column0 WHEN 0 THEN column1 ELSE column3 END AS vid,
       CASE column0 WHEN 0 THEN column2 ELSE column1 END AS time, column5 AS toll, column4 AS accident
FROM read_csv({file}, header = false, auto_detect = false, delim = ',', null_padding = true, columns = {{
     'column0': 'INTEGER', 'column1': 'BIGINT', 'column2': 'DOUBLE', 'column3': 'DOUBLE', 'column4': 'BIGINT',
     'column5': 'BIGINT'}}) WHERE column0 <= 1"""

SPEEDS = """
SELECT time // 60 + 1 AS minute, xway, dir, seg, round(avg(spd))::INTEGER, count(DISTINCT vid)
FROM cars GROUP BY ALL"""

TOLLS = """
SELECT time // 60 + 1 AS minute, xway, dir, seg, max(toll)
FROM cars JOIN notices USING (vid, time) WHERE type = 0 AND toll > 0 GROUP BY ALL"""

ACCIDENTS = """
SELECT DISTINCT time // 60 + 1 AS minute, xway, dir, accident FROM cars JOIN notices USING (vid, time)
    WHERE type = 1"""


class Minute(TypedDict):
    """The road in one minute. A cell is a segment of the map: (xway * 2 + dir) * 100 + seg."""

    speed: list[tuple[int, int, int]]
    """Cell, mph, cars."""
    toll: list[tuple[int, int]]
    """Cell, toll."""
    accident: list[int]
    """Cells."""


@dataclass(frozen=True)
class Road:
    """What is known of the road in each minute."""

    xways: int
    minutes: dict[int, Minute]


def read_road(path: Path, answers: Path, xways: int = MOST_XWAYS) -> Road:
    """Read the road from an input and its answers, for the first expressways."""
    source = open_input(path)
    with duckdb.connect(":memory:") as con:
        con.execute(CARS.format(rows=_rows(source.files, source.format), xways=xways))
        con.execute(NOTICES.format(file=_quoted(str(answers))))
        row = con.execute("SELECT max(xway) + 1 FROM cars").fetchone()
        road = Road(int(row[0] or 0) if row else 0, {})
        _fill(con, road)
    return road


def _fill(con: duckdb.DuckDBPyConnection, road: Road) -> None:
    for minute, xway, way, seg, mph, cars in con.execute(f"{SPEEDS} ORDER BY ALL").fetchall():
        _minute(road, minute)["speed"].append((_cell(xway, way, seg), mph, cars))
    for minute, xway, way, seg, toll in con.execute(f"{TOLLS} ORDER BY ALL").fetchall():
        _minute(road, minute)["toll"].append((_cell(xway, way, seg), toll))
    for minute, xway, way, seg in con.execute(f"{ACCIDENTS} ORDER BY ALL").fetchall():
        _minute(road, minute)["accident"].append(_cell(xway, way, seg))


def _minute(road: Road, minute: float) -> Minute:
    return road.minutes.setdefault(int(minute), {"speed": [], "toll": [], "accident": []})


def _cell(xway: int, way: int, seg: int) -> int:
    return (xway * 2 + way) * SEGMENTS + seg


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _rows(files: tuple[Path, ...], form: str) -> str:
    listed = ", ".join(_quoted(str(file)) for file in files)
    if form == "parquet":
        return f"read_parquet([{listed}])"
    # Rows that break the format are no cars: skip them instead of failing.
    types = ", ".join(f"'{name}': 'INTEGER'" for name in COLUMNS)
    return (
        f"read_csv([{listed}], header = false, auto_detect = false, delim = ',', ignore_errors = true, "
        f"columns = {{{types}}})"
    )


def busiest(road: Road) -> int:
    """The minute to show first: the one with the most to see."""
    # Accidents first, then tolls; of equal minutes the last, when the road is fullest.
    return max(
        road.minutes, key=lambda m: (len(road.minutes[m]["accident"]) > 0, len(road.minutes[m]["toll"]), m)
    )


def colour(mph: float) -> str:
    """Red where cars stand, green where they drive freely.

    >>> colour(0), colour(35), colour(70)
    ('hsl(0 70% 50%)', 'hsl(60 70% 50%)', 'hsl(120 70% 50%)')
    """
    return f"hsl({round(min(max(mph, 0), 70) * 120 / 70)} 70% 50%)"


def draw(road: Road) -> str:
    """The map with the script that repaints it; empty if nobody drives."""
    if not road.minutes:
        return ""
    first, height = busiest(road), road.xways * _STEP + 24
    width = _LEFT + SEGMENTS * _WIDTH + 10
    strips = "".join(_strips(road, first))
    slider = (
        f'<label>minute <output id="minute">{first}</output> '
        f'<input id="when" type="range" min="{min(road.minutes)}" '
        f'max="{max(road.minutes)}" value="{first}"></label>'
    )
    box = f"0 0 {width} {height}"
    svg = f'<svg id="road" viewBox="{box}" role="img" aria-label="map of the road">{strips}</svg>'
    data = json.dumps({str(number): minute for number, minute in road.minutes.items()}, separators=(",", ":"))
    return f"{slider}{svg}{_LEGEND}<script>const road = {data};{_SCRIPT}</script>"


def _strips(road: Road, minute: int) -> Iterator[str]:
    frame = road.minutes[minute]
    speeds = {cell: (mph, cars) for cell, mph, cars in frame["speed"]}
    tolls, accidents = dict(frame["toll"]), set(frame["accident"])
    for xway in range(road.xways):
        for way, name in enumerate(("east", "west")):
            y = 18 + xway * _STEP + way * (_HEIGHT + 12)
            yield f'<text x="4" y="{y + 12}">{xway} {escape(name)}</text>'
            for seg in range(SEGMENTS):
                cell = _cell(xway, way, seg)
                yield _segment(seg, y, cell, speeds.get(cell), tolls.get(cell), accident=cell in accidents)


def _segment(
    seg: int, y: int, cell: int, speed: tuple[int, int] | None, toll: int | None, *, accident: bool
) -> str:
    x = _LEFT + seg * _WIDTH
    fill = _NOBODY if speed is None else colour(speed[0])
    # The least toll is still visible, and the highest bar stays below the strip above.
    bar = 0 if toll is None else min(10, 2 + toll // 400)
    hidden = "" if accident else " visibility=hidden"
    return (
        f'<g id="p{cell}"><rect x="{x}" y="{y}" width="{_WIDTH - 1}" height="{_HEIGHT}" fill="{fill}">'
        f"<title>{_words(seg, speed, toll, accident=accident)}</title></rect>"
        f'<rect class="toll" x="{x}" y="{y - bar - 1}" width="{_WIDTH - 1}" height="{bar}"/>'
        f'<text class="crash" x="{x - 1}" y="{y + 13}"{hidden}>&#10006;</text></g>'
    )


def _words(seg: int, speed: tuple[int, int] | None, toll: int | None, *, accident: bool) -> str:
    cars = "nobody" if speed is None else f"{speed[1]} cars, {speed[0]} mph"
    return f"segment {seg}: {cars}, toll {toll or 0}{', accident' if accident else ''}"


_LEGEND = (
    '<p class="note">Colour: mean speed, red 0 to green 70 mph; grey: nobody. '
    "Blue bar: the highest toll quoted there in the minute. "
    "&#10006;: an accident that cars were warned of. Move over a segment for its figures.</p>"
)

_SCRIPT = """
const when = document.getElementById("when");
when.addEventListener("input", () => {
  document.getElementById("minute").textContent = when.value;
  const now = road[when.value] || {speed: [], toll: [], accident: []};
  const speed = new Map(now.speed.map(s => [s[0], s]));
  const toll = new Map(now.toll), crash = new Set(now.accident);
  for (const g of document.querySelectorAll("#road g")) {
    const cell = +g.id.slice(1), s = speed.get(cell), t = toll.get(cell) || 0;
    const [box, bar, cross] = g.children;
    box.setAttribute("fill", s ? `hsl(${Math.round(Math.min(s[1], 70) * 120 / 70)} 70% 50%)` : "#e8e8e8");
    const h = t ? Math.min(10, 2 + Math.floor(t / 400)) : 0;
    bar.setAttribute("height", h); bar.setAttribute("y", +box.getAttribute("y") - h - 1);
    cross.setAttribute("visibility", crash.has(cell) ? "visible" : "hidden");
    box.firstElementChild.textContent = `segment ${cell % 100}: `
      + (s ? `${s[2]} cars, ${s[1]} mph` : "nobody")
      + `, toll ${t}` + (crash.has(cell) ? ", accident" : "");
  }
});"""
