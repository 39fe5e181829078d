"""What all benchmarks share: the command line, the one writer of results, processor seconds, tables."""
