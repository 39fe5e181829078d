"""Options of every command that opens a console, and what they mean."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

PORT = 8780
PortOption = Annotated[int, typer.Option("--port", help="Port of the console; 0 takes any free one.")]
OpenOption = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
HostOption = Annotated[
    str,
    typer.Option(
        "--host",
        help="Address of the console. Only this machine can reach loopback; for any other address, clients "
        "need a token: give some, or one is made and printed.",
    ),
]
TokenOption = Annotated[
    list[str] | None,
    typer.Option(
        "--token",
        metavar="NAME=SECRET",
        help="A client of the console and its secret (repeatable); changes are logged with NAME. Other users "
        "of this machine can read command lines: rather use the variable.",
        envvar="PENSTOCK_TOKENS",
        show_envvar=True,
    ),
]
ReadTokenOption = Annotated[
    list[str] | None,
    typer.Option("--read-token", metavar="NAME=SECRET", help="The same for a client that may only look."),
]
AllowHostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host", metavar="NAME", help="A host name by which clients reach the console (repeatable)."
    ),
]


@dataclass(frozen=True)
class ConsoleOptions:
    """Where a console listens and whom it lets in."""

    port: int = PORT
    host: str = "127.0.0.1"
    open: bool = False
    tokens: Sequence[str] = ()
    read_tokens: Sequence[str] = ()
    names: Sequence[str] = ()

    def arguments(self) -> dict[str, Any]:
        """For `Console`. Where other machines can connect and no token was given, one is made and printed."""
        from penstock.http.access import is_loopback

        tokens = list(self.tokens)
        if not tokens and not self.read_tokens and not is_loopback(self.host):
            secret = secrets.token_urlsafe()
            tokens = [f"console={secret}"]
            typer.echo(f"token of the console: {secret}", err=True)
        return {
            "port": self.port,
            "host": self.host,
            "tokens": tokens,
            "read_tokens": list(self.read_tokens),
            "names": list(self.names),
        }

    def tell(self, url: str) -> None:
        """Say where the page is, and open it if wished."""
        typer.echo(f"console: {url}", err=True)
        if self.open:
            import webbrowser

            webbrowser.open(url)
