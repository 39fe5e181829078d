"""What a network must satisfy before it runs: types of streams and windows, joins, topology."""
