"""`penstock diffusion`: the simulated cluster."""
