"""Vectorised box logics on Arrow tables: what runs inside a Spark task, and what any other engine may use."""
