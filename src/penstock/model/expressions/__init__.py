"""Expressions of boxes: from Spark SQL text to a typed tree that engines evaluate."""
