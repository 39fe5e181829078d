"""`penstock lr`: one module for each command."""
