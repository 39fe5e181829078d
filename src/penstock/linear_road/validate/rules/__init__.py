"""The right answers as SQL, one module for each topic of the benchmark."""
