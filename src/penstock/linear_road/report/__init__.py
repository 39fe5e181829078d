"""One self-contained page about a run or a rating: plots, the table of answers, a map of the road.

Idea: the functions take plain values (`run.json`, `rating.json`, the validator's verdict, frames of the
road). So anyone with such values can have a page: `lr run`, `lr rate`, the demo, or another system that
writes the same fields. Pictures are embedded, so the page opens offline. `page` is the text, `charts` the
plots, `road_map` the map, `compare` two results side by side.
"""

from penstock.linear_road.errors import CompareError
from penstock.linear_road.report.compare import compare, load
from penstock.linear_road.report.page import rating_page, run_page, write_page
from penstock.linear_road.report.road_map import Road, read_road

__all__ = [
    "CompareError",
    "Road",
    "compare",
    "load",
    "rating_page",
    "read_road",
    "run_page",
    "write_page",
]
