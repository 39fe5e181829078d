"""Semantic shedding (A90, A91): which values are worth least, where they can be told, how many go."""
