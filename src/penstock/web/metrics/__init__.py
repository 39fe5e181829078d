"""Figures for Prometheus: read from what the run records anyway, when somebody scrapes."""
