"""Expressions and aggregates, one tuple at a time."""
