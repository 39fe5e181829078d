"""Descriptions of sources and sinks: one module a system, a registry by name, and what options may say."""
