"""The network, on the reference and on Spark."""
