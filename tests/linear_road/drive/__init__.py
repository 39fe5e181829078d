"""The data driver."""
