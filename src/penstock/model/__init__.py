"""What a network is: boxes, arrows, connection points, QoS. Pure and frozen; imports no Spark (Aurora, Sect. 2)."""
