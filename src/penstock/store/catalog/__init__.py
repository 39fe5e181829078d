"""The catalog: what the network is and how it has been doing, in SQLite (A53, A93)."""
