"""Standing queries: under load, against alternatives, and the experiments of the PSoup paper."""
