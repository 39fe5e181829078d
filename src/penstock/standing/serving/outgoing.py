"""Answers on their way to clients: in pieces, and with a bound on what all of them take together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.http.errors import BusyError

_STEP = 64 << 10  # bytes handed over at a time: what uvicorn lets wait for a client that does not read


def in_steps(body: bytes) -> Iterator[bytes]:
    """A body in parts that are short enough for the event loop.

    >>> [len(part) for part in in_steps(bytes(150_000))]
    [65536, 65536, 18928]
    """
    return (body[first : first + _STEP] for first in range(0, len(body), _STEP))


class OutgoingAnswers:
    """The bytes of all answers that clients have not read yet."""

    def __init__(self, most: int) -> None:
        self._most, self.size = most, 0

    def add(self, size: int) -> None:
        """Count an answer in, or refuse it. An answer alone is always taken."""
        if self.size and self.size + size > self._most:
            raise BusyError("too many large answers are being read", hint="try again a little later")
        self.size += size

    def remove(self, size: int) -> None:
        """Count an answer out."""
        self.size -= size


class PiecesResponse(Response):
    """A body in pieces, which are not joined: that would take the memory twice."""

    def __init__(self, pieces: Sequence[bytes], outgoing: OutgoingAnswers, media_type: str) -> None:
        self._pieces, self._outgoing = pieces, outgoing
        self._size = sum(len(piece) for piece in pieces)
        outgoing.add(self._size)
        super().__init__(headers={"content-length": str(self._size)}, media_type=media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            for part in (part for piece in self._pieces for part in in_steps(piece)):
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._outgoing.remove(self._size)
