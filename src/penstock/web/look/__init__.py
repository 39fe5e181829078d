"""What can be seen of a network, as JSON: its picture, its figures now, its past. Nothing here changes it."""
