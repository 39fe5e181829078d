"""Diffused joins: skewed keys, a band join, and the simulated cluster of the paper."""
