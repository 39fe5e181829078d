"""What one client may cost the server before any route sees its request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServerLimits:
    """The limits of connections and requests; they are the same for every service."""

    connections: int = 4_096  # open at once
    header_bytes: int = 16 << 10
    header_seconds: float = 10.0  # from the first byte to the end of the headers
    body_bytes: int = 1 << 20
    body_seconds: float = 20.0  # for the whole body
    bodies_bytes: int = 64 << 20  # bodies of all requests that are being read
    send_buffer: int = 256 << 10  # bytes that the system keeps for a client that has not read them
    stall_seconds: float = 20.0  # for a client that does not read what it has asked for
    idle_seconds: int = 5  # between two requests of one connection
