"""The soak: long tests at full counts, in pieces. `scripts/soak.py` runs them."""
