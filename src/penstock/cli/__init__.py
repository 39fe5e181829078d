"""The command line: one module for each topic, joined in `main`."""
