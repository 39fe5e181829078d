"""`penstock lr`: one module a command."""
