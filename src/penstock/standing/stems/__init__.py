"""Query SteM and Data SteMs: how queries and tuples find each other (P07, P22-P26)."""
