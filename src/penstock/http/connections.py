"""Connections with an end: slow headers, slow bodies and readers that do not read are timed out.

uvicorn limits the size of headers and the time between two requests. The rest is here, at the transport: a
route can wait for a slow client only by holding its answer, and a thousand such clients would be a thousand
answers.
"""

from __future__ import annotations

import asyncio
import socket
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.http.limits import ServerLimits

_LAST_WORDS = 1.0  # seconds for a client to take the reason
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class TimedConnection(H11Protocol):
    """One connection. A timer runs while the client is expected to send, another while it must read."""

    limits: ClassVar[ServerLimits] = ServerLimits()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        super().connection_made(transport)
        self._sending: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._expected = ""
        connection = transport.get_extra_info("socket")
        if connection is not None:
            # Left alone, the system lets the buffer of each silent reader grow to megabytes.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.limits.send_buffer)
        if len(self.connections) > self.limits.connections:
            transport.abort()
        else:
            self._expect("headers")

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Restart the timer only when another part begins: one byte now and then does not prolong it.
        parts = {h11.IDLE: "headers", h11.SEND_BODY: "body"}
        self._expect(parts.get(self.conn.their_state, ""))

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect("")  # until the first byte of the next request, uvicorn's own timer runs

    def _expect(self, part: str) -> None:
        if part == self._expected:
            return
        self._expected = part
        _cancel(self._sending)
        seconds = {"headers": self.limits.header_seconds, "body": self.limits.body_seconds}.get(part)
        self._sending = None if seconds is None else self.loop.call_later(seconds, self._too_slow)

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            if self.cycle is None or not self.cycle.response_started:
                self.transport.write(_TOO_SLOW)
            self.transport.close()
            self.loop.call_later(_LAST_WORDS, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        _cancel(self._reading)
        # Not `close`, which would wait until the client has read everything.
        self._reading = self.loop.call_later(self.limits.stall_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._reading)

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._sending)
        _cancel(self._reading)
        super().connection_lost(exc)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def timed_connection(limits: ServerLimits) -> type[TimedConnection]:
    """The kind of connection that keeps to some limits."""
    return type("TimedConnection", (TimedConnection,), {"limits": limits})
