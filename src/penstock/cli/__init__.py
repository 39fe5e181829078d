"""The command line: one module a topic, joined in `main`."""
