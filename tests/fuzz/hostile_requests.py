"""A generator of requests that no honest client sends: bodies, queries, paths and headers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field

QUERIES = (
    "SELECT vid, spd FROM reports WHERE spd < 20 AND vid BETWEEN 4 AND 6 BEGIN now - 10 minutes END now",
    "SELECT DISTINCT vid FROM reports WHERE vid IN (1, 2, 3) OR spd = 0 BEGIN last 1000 tuples",
    "SELECT COUNT(*), AVG(spd) AS mean FROM reports WHERE NOT (vid = 7) BEGIN '1970-01-01 00:00:05' END now",
    "SELECT a.vid FROM reports a, reports b WHERE a.vid = b.vid AND a.spd + b.spd > 3 BEGIN now - 9 s FOR a",
    "SELECT time FROM reports WHERE concat(vid, 'x') LIKE '%1%x' AND CASE WHEN vid > 2 THEN TRUE END",
)
_TOKENS = (
    *"()[]{},;'\"`\\-+*/<>=.%:@#$&|~^?!\0\n\t é\u2028\U0001f600", "--", "/*", "*/", "''", "\\'", "BEGIN",
    "END", "FOR", "now", "last", "SELECT", "FROM", "WHERE", "AND", "OR", "NOT", "IN", "LIKE", "RLIKE", "CASE",
    "WHEN",
    "CAST", "INTERVAL", "NULL", "1e999999999", "9" * 400, "0x", "1.5.2", "vid", "reports", "(SELECT 1)",
    "'(a*)*'", "UNION", "GROUP BY", "OVER", "::", "=>", "->", "'9999999-01-01'", "TIMESTAMP", "-1",
)  # fmt: skip
_PATHS = (
    "/queries", "/queries/%00", "/queries/../../etc/passwd", "/queries/%2e%2e%2f%2e%2e%2fetc", "/queries/q-1",
    "/queries/%ff%fe/result", "/queries/{}/result?at=1e400", "/queries/x/result?at=%00",
    "/queries?client=%ff",
    "/queries/" + "a" * 3000, "//queries", "/queries//result", "/%", "/docs/..", "/openapi.json?x", "*",
)  # fmt: skip


@dataclass(frozen=True)
class HostileRequest:
    """One request, and what kind of attack it is."""

    kind: str
    method: str = "POST"
    path: str = "/queries"
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


def hostile_request(rng: random.Random) -> HostileRequest:
    """One more."""
    return rng.choice(_KINDS)(rng)


def _query(rng: random.Random) -> HostileRequest:
    """A query with some tokens lost, doubled, swapped or put in."""
    words = rng.choice(QUERIES).replace(",", " , ").replace("(", " ( ").replace(")", " ) ").split()
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(words) + 1)
        words[at : at + rng.randint(0, 3)] = rng.choices([*_TOKENS, *words], k=rng.randint(0, 3))
    return _asked("query", " ".join(words))


def _repeated(rng: random.Random) -> HostileRequest:
    """Some tokens, again and again: what is quadratic shows here."""
    part = " ".join(rng.choices(_TOKENS, k=rng.randint(1, 3)))
    head = rng.choice(["", "SELECT vid FROM reports WHERE ", "SELECT vid FROM reports BEGIN now "])
    return _asked("repeated", head + part * rng.randint(1, 60_000 // max(1, len(part))))


def _nested(rng: random.Random) -> HostileRequest:
    """One thing inside another, deeper and deeper."""
    begin, end = rng.choice(
        [("(", ")"), ("NOT (", ")"), ("concat(", ")"), ("CASE WHEN ", " THEN 1 END"), ("-", ""), ("f(", ")")]
    )
    depth = rng.randint(1, 5_000)
    return _asked("nested", f"SELECT vid FROM reports WHERE {begin * depth}vid = 1{end * depth}")


def _large(rng: random.Random) -> HostileRequest:
    size = rng.choice([60_000, 70_000, 1_000_000, 1_100_000, 3_000_000])
    return _asked("large", "SELECT vid FROM reports WHERE vid = " + "1" * size)


def _fields(rng: random.Random) -> HostileRequest:
    """JSON of a wrong shape, with values of wrong kinds."""
    values = (None, True, -1, 1e308, "", "\ud800", "a\0b", [], {}, [[]], {"query": "x"}, "x" * 1000, 10**400)
    names = ("query", "client", "mode", "handle", "owner", "\udfff", "__proto__", "limits")
    body = {rng.choice(names): rng.choice(values) for _ in range(rng.randint(0, 4))}
    if rng.random() < 0.5:
        body["query"] = rng.choice(QUERIES)
    return HostileRequest("fields", body=json.dumps(rng.choice([body, [body], "x", 7])).encode())


def _bytes(rng: random.Random) -> HostileRequest:
    """Bytes that are no JSON, or JSON with some bytes changed."""
    body = bytearray(json.dumps({"query": rng.choice(QUERIES)}).encode())
    for _ in range(rng.randint(1, 6)):
        body[rng.randrange(len(body))] = rng.randrange(256)
    return HostileRequest(
        "bytes", body=rng.choice([bytes(body), bytes(body)[: len(body) // 2], rng.randbytes(200)])
    )


def _deep(rng: random.Random) -> HostileRequest:
    depth = rng.choice([10, 1_000, 200_000])
    body = rng.choice([b"[" * depth, b'{"query":' * depth, b"[" * depth + b"]" * depth])
    return HostileRequest("deep", body=body)


def _address(rng: random.Random) -> HostileRequest:
    method = rng.choice(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "PROPFIND"])
    return HostileRequest("address", method, rng.choice(_PATHS), headers={})


def _headers(rng: random.Random) -> HostileRequest:
    name, value = rng.choice(
        [
            ("Host", "evil.example"), ("Origin", "https://evil.example"), ("Origin", "null"),
            ("Sec-Fetch-Site", "cross-site"), ("Content-Type", "text/plain"), ("Cookie", "a=\x7f;;=;" * 300),
            ("Authorization", "Bearer " + "x" * 4000), ("Accept", "\xff" * 100), ("X-Forwarded-Host", "evil"),
            ("Content-Encoding", "gzip"), ("Expect", "100-continue"), ("Range", "bytes=0-1"),
        ]
    )  # fmt: skip
    body = json.dumps({"query": rng.choice(QUERIES)}).encode()
    return HostileRequest("headers", body=body, headers={"Content-Type": "application/json", name: value})


def _asked(kind: str, query: str) -> HostileRequest:
    return HostileRequest(kind, body=json.dumps({"query": query}).encode())


_KINDS: tuple[Callable[[random.Random], HostileRequest], ...] = (
    _query, _query, _query, _repeated, _nested, _large, _fields, _bytes, _deep, _address, _headers,
)  # fmt: skip
