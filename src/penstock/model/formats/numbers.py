"""Numbers that a description takes."""

from __future__ import annotations

from penstock.model.errors import ExpressionError, shown


def whole_number(what: str, given: object, least: int = 1) -> None:
    """Refuse what is no whole number, or too small a one."""
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise ExpressionError(
            f"{what}: not a valid number", found=shown(given), expected=f"a whole number, {least} or more"
        )
