"""Generated traffic and history."""
