"""Checks and rewrites, Network -> Network, one module a rule; they read a box's traits and know no engine."""
