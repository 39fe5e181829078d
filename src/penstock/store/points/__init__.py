"""Connection points as retained tables: sorted files, leases, compaction, retention (A25, A26, A70)."""
