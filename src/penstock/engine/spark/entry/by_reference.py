"""Numbers that change from train to train, handed to Spark without changing its generated code."""

from __future__ import annotations


def by_reference(number: int, column: str) -> str:
    """SQL of a number that changes from train to train, so that the generated code does not change with it.

    A plain literal stands in the code, which the JVM then has to compile anew for every train (counted: 7
    classes a train for a filter and a map, none since). An array is handed over beside the code; the index
    must be no constant, or Spark would look the number up while planning.
    """
    return f"get(array({number}L, {number}L), CAST({column} IS NULL AS INT))"
