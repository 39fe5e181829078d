"""A rating: the largest L that this machine answers in time."""
