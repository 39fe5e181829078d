"""Query SteM and Data SteMs: queries and tuples that find each other (P07, P22-P26)."""
