"""`penstock lr describe`: what an input holds, in figures and pictures."""
