"""The catalog: what the network is and how it has performed, in SQLite (A53, A93)."""
