"""`penstock console`, `attach` and `apply`: the console of a checkpoint, and a console from a terminal."""
