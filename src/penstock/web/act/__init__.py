"""What the console changes in a running network: edits, queries, holds, monitors, QoS graphs.

Each part works on a `Runtime`. Who may do it, and whether the client knows the current version, is decided
before, in `service.py`.
"""
