"""A whole run: driver and network together, its progress, its cost, its answers."""
