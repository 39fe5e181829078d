"""What acts while a network runs: the dispatcher of trains, and the loop that looks, decides and applies."""
