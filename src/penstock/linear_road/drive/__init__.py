"""The data driver: delivers an input second by second, on one clock."""
