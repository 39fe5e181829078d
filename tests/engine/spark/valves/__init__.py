"""Valves on Spark: against the reference, in files, through restarts."""
