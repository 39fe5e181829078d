"""What an engine and its control agree on, without Spark: policy, situation, steering, tickets, commits."""
