"""State that is rebuilt after a crash: versions in memory, snapshots in the background, trains run again."""
