"""Which files a source has, which of them are whole, and what became of those that were read."""
