"""Curves of the papers on scheduling and shedding; `python -m benchmarks.qos.curves` runs them."""
