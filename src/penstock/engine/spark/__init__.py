"""Networks on Spark: a sub-network between connection points is one streaming query."""
