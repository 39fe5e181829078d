"""The optimizer of a running network (A41, A47, A48): pure decisions, and the cycle that acts on them."""
