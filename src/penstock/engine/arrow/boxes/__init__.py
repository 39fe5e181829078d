"""One module a box: its logic on Arrow tables, with state as columns."""
