"""Whole runs: stopping, resuming, collecting."""
