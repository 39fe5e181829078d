"""Measurements of Penstock, one folder for each topic.

Run one as a module, from the root of the repository: `python -m benchmarks.engine.overhead --help`.
"""
