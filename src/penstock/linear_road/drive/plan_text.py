"""A plan as one line of JSON, for a child process that carries it out.

Plans are frozen dataclasses of numbers, words and paths. JSON has no paths, so the field types tell which
words are paths.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, get_args, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PlanType = TypeVar("PlanType")


def plan_to_text(plan: DataclassInstance) -> str:
    """The fields of a plan as JSON.

    >>> from penstock.linear_road.drive.driver import DrivePlan
    >>> plan = DrivePlan(Path("slices"), to="feed", speed=float("inf"))
    >>> plan_from_text(DrivePlan, plan_to_text(plan)) == plan
    True
    """
    return json.dumps({field.name: _plain(getattr(plan, field.name)) for field in fields(plan)})


def plan_from_text(kind: type[PlanType], text: str) -> PlanType:
    """The plan of this kind that `plan_to_text` wrote."""
    hints = get_type_hints(kind)
    values = json.loads(text)
    paths = {name for name, hint in hints.items() if hint is Path or Path in get_args(hint)}
    return kind(**{name: _restored(value, is_path=name in paths) for name, value in values.items()})


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


def _restored(value: object, *, is_path: bool) -> object:
    return Path(value) if is_path and isinstance(value, str) else value
