"""What a network is: boxes, arrows, connection points, QoS (Aurora, Sect. 2). Frozen data; no Spark."""
