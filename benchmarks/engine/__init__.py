"""The Spark engine: overhead, latency, memory, and what changing a running network costs."""
