"""Ratings: the search, the trials, the set they share."""
