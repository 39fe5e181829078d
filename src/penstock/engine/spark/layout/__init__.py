"""How a sub-network is laid out on Spark: native boxes, stages, the proxy of diffused joins."""
