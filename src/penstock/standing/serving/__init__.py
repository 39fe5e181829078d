"""The service: registry on disk, feeds from connection points, HTTP, followers."""
