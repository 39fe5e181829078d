"""Linear Road: a folder for each room of the source; the golden input and a dry run for all of them."""
