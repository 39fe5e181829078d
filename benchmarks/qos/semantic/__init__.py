"""Semantic against random shedding (Q5); `python -m benchmarks.qos.semantic` runs it."""
