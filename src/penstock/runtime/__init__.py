"""Running a network: its sub-networks as queries, attaching and replacing them, what is recorded about them."""

from penstock.runtime.runtime import Runtime

__all__ = ["Runtime"]
