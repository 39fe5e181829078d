"""Linear Road: whole runs, and each tool of the kit."""
