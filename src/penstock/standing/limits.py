"""What a client may ask for. The limits are the server's: no request can raise them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits of one service; docs/standing.md lists them with the options that set them.

    >>> Limits(queries=5).rows
    1000000
    """

    queries: int = 10_000  # standing queries of one owner
    rows: int = 1_000_000  # of one answer
    answer_bytes: int = 128 << 20  # of one answer, as columns and again as JSON
    pairs: int = 50_000_000  # combinations that one step of a join looks at
    seconds: float = 10.0  # of one invocation
    text: int = 64 << 10  # bytes of one query
    values: int = 10_000  # of one IN list
    streams: int = 8  # in one FROM
    parse_seconds: float = 5.0
    followers: int = 2_000  # of all queries together
    followed_rows: int = 100_000  # of an answer that is followed
    followed_bytes: int = 256 << 20  # for all answers that are followed
    queued_events: int = 64  # that wait for one follower
    queued_bytes: int = 8 << 20  # that wait for one follower, the first answer apart
