"""Who may talk to a service: the names it answers to, and the tokens of its clients.

A web page that somebody looks at can send requests to this machine too. It is kept out by the headers that
browsers do not let a page choose: `Host` (a name that was made to point here, DNS rebinding), `Origin` and
`Sec-Fetch-Site` (a page of another site). Tokens say who a client is. They are optional on loopback, where
only this machine's users can connect.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from starlette.datastructures import Headers

from penstock.model.errors import PenstockError

COOKIE = "penstock_token"
_LEAST_SECRET = 16  # characters
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
SAFE_METHODS = ("GET", "HEAD")


@dataclass(frozen=True)
class Token:
    """A client's name, and the digest of its secret: the secret itself is not kept."""

    name: str
    digest: bytes
    looks_only: bool = False

    @staticmethod
    def parse(text: str, *, looks_only: bool = False) -> Token:
        """From `NAME=SECRET`.

        >>> Token.parse("board=0123456789abcdef").name
        'board'
        """
        name, _, secret = text.partition("=")
        if not _NAME.fullmatch(name) or len(secret) < _LEAST_SECRET:
            # The text is not shown: it may be a secret.
            raise PenstockError(
                "a token is not of the form NAME=SECRET",
                expected=f"a name of letters, digits, '_', '.', '-', and {_LEAST_SECRET} characters or more",
                hint='make one with: python -c "import secrets; print(secrets.token_urlsafe())"',
            )
        return Token(name, _digest(secret), looks_only)


@dataclass(frozen=True)
class Access:
    """What a service demands of every request."""

    names: frozenset[str] = frozenset({"localhost"})
    tokens: tuple[Token, ...] = ()

    @staticmethod
    def of(
        host: str,
        tokens: Iterable[str] = (),
        names: Iterable[str] = (),
        read_tokens: Iterable[str] = (),
    ) -> Access:
        """The rules for a service bound to an address; `names` are other names by which clients reach it.

        Clients with `read_tokens` may look, but change nothing.

        >>> Access.of("127.0.0.1").tokens
        ()
        """
        parsed = (
            *(Token.parse(text) for text in tokens),
            *(Token.parse(text, looks_only=True) for text in read_tokens),
        )
        if not parsed and not is_loopback(host):
            raise PenstockError(
                f"{host} can be reached from other machines, and no client needs a token",
                expected="--token NAME=SECRET, once for each client, or an address of this machine alone",
                hint="tokens can also stand in PENSTOCK_TOKENS, separated by blanks",
            )
        local = {"localhost"} if is_loopback(host) else set()
        own = set() if _is_address(host) else {host}
        return Access(frozenset(name.lower() for name in (*local, *own, *names)), parsed)

    def knows(self, host: str) -> bool:
        """Whether a `Host` header is one of ours. An address always is: rebinding needs a name.

        >>> [Access().knows(host) for host in ("127.0.0.1:80", "[::1]:80", "localhost:80", "evil.example:80")]
        [True, True, True, False]
        """
        name = _without_port(host).lower()
        return name in self.names or _is_address(name)

    def owner(self, headers: Headers) -> str | None:
        """The name of the client; "" for everybody where there are no tokens, None for a stranger."""
        if not self.tokens:
            return ""
        token = self.token_of(_secret(headers))
        return None if token is None else token.name

    def may_change(self, headers: Headers) -> bool:
        """Whether the client may do more than look."""
        if not self.tokens:
            return True
        token = self.token_of(_secret(headers))
        return token is not None and not token.looks_only

    def token_of(self, secret: str) -> Token | None:
        """The token that a secret belongs to."""
        given, known = _digest(secret), None
        for token in self.tokens:  # to the end, so that the time says nothing about which one is near
            if hmac.compare_digest(token.digest, given):
                known = token
        return known


def from_own_page(method: str, headers: Headers) -> bool:
    """Whether a request comes from no web page, or from a page of this service.

    >>> from_own_page("POST", Headers({"host": "localhost:1", "origin": "https://evil.example"}))
    False
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if origin is not None and origin.lower().partition("://")[2] != headers.get("host", "").lower():
        return False
    if site in ("same-origin", "none"):
        return True
    # A link that somebody follows: the page that holds it does not see the answer.
    return method in SAFE_METHODS and headers.get("sec-fetch-mode") == "navigate"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host.strip("[]")).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _secret(headers: Headers) -> str:
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return secret.strip()
    cookies = (each.strip().partition("=") for each in headers.get("cookie", "").split(";"))
    return next((value for name, _, value in cookies if name == COOKIE), "")


def _digest(secret: str) -> bytes:
    return sha256(secret.encode(errors="replace")).digest()
