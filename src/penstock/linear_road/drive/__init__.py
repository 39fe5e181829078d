"""The data driver: an input delivered second by second, on one clock."""
