"""Connection points as retained tables: entries in sorted files, leases, compaction, retention (A25, A26,
A70).
"""
