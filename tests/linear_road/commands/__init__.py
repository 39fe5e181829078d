"""`penstock lr` at the command line."""
