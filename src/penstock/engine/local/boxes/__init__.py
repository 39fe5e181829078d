"""One module a box: rows are dicts, logic is loops."""
