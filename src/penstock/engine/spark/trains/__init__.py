"""Trains from ticket to commit: the query, its conductor, one run of a ticket."""
