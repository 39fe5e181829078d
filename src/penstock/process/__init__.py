"""Processes: how one is asked to stop, and how a child ends with its parent. Imports nothing of Penstock."""
