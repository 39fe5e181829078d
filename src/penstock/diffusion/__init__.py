"""Load diffusion on the paper's own cluster: the simulator and its experiments (Gu and Yu; S05, S13, S14).

The diffused join that runs on Spark lives in `penstock.engine`: `stream.join(..., distribution="diffused")`.
"""
