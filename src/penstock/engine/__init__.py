"""Engines: what boxes do.

`local` is the slow, obvious reference, `arrow` the vectorised logic, `spark` runs it.
"""
