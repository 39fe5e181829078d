"""From matches to answers: results, joins, windows, changes, the budget they share (P19, P27-P37)."""
