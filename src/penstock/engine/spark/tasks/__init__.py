"""What runs inside a Spark task: stages of box logics and their state."""
