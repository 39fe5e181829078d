"""The right answers as SQL, one module a topic of the benchmark."""
