"""What outlives a process: connection point tables, leases, dead letters and the catalog. No Spark import."""
