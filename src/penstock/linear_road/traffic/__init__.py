"""Synthetic traffic and its history: trips, accidents, movement, ten weeks of tolls."""
