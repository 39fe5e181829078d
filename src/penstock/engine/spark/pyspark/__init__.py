"""What runs in place of PySpark's own programs."""
