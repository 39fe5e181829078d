"""What runs beside a trial: one process gives the input, one sees the output."""
