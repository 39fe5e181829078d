"""`penstock attach` and `penstock apply`: what the console's page does, from a terminal."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

import typer

from penstock.cli.load import NET_HELP, load_network
from penstock.cli.printable import printable_line
from penstock.cli.refusals import refusals
from penstock.model.errors import PenstockError
from penstock.model.json_types import JsonMapping, JsonObject
from penstock.model.text.yaml_form import to_yaml

_POLL = 0.5  # seconds
_PATIENCE = 320.0  # seconds: a change waits for trains
Url = Annotated[str, typer.Argument(metavar="URL", help="A console, such as http://127.0.0.1:8780.")]
Secret = Annotated[
    str,
    typer.Option(
        "--token",
        metavar="SECRET",
        help="The secret of your token, if the console has tokens.",
        envvar="PENSTOCK_TOKEN",
        show_envvar=True,
    ),
]


class ConsoleClient:
    """Talks to a console, and tells its refusals as our own errors."""

    def __init__(self, url: str, secret: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise PenstockError(f"{url} is no URL", expected="such as http://127.0.0.1:8780")
        self._url, self._secret = url.rstrip("/"), secret

    def get(self, path: str) -> JsonObject:
        """Read."""
        return self._ask(Request(self._url + path, headers=self._headers()))  # noqa: S310 - http only

    def post(self, path: str, body: JsonMapping) -> JsonObject:
        """Write."""
        headers = {**self._headers(), "content-type": "application/json"}
        sent = json.dumps(body).encode()
        return self._ask(Request(self._url + path, sent, headers))  # noqa: S310 - http only

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._secret}"} if self._secret else {}

    def _ask(self, request: Request) -> JsonObject:
        try:
            with urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310 - http only, see __init__
                told: JsonObject = json.load(answer)
                return told
        except HTTPError as error:
            raise _refused(error) from None
        except (URLError, TimeoutError, json.JSONDecodeError) as error:
            reason = str(getattr(error, "reason", error))
            hint = "start one with: penstock run NET --console"
            raise PenstockError(f"no console answers at {self._url}", found=reason, hint=hint) from None

    def version(self) -> int:
        """The version of the network now."""
        return int(self.get("/api/network")["version"])


def _refused(error: HTTPError) -> PenstockError:
    try:
        told = json.load(error)
    except json.JSONDecodeError:
        told = {}
    position = f"line {told['line']}, column {told.get('column', 1)}: " if told.get("line") else ""
    more = "; ".join(told.get("difference", ()))
    details = "; ".join(part for part in (told.get("found", ""), more) if part)
    problem = position + told.get("problem", f"the console answered {error.code}")
    return PenstockError(problem, found=details, expected=told.get("expected", ""), hint=told.get("hint", ""))


def attach(
    url: Url,
    point: Annotated[str, typer.Argument(metavar="POINT", help="A connection point or view.")],
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY",
            help='For example "SELECT vid, spd FROM reports WHERE spd < 20", or a file with boxes in YAML.',
        ),
    ],
    name: Annotated[str, typer.Option(help="A name for the query.")] = "",
    keep: Annotated[str, typer.Option(help="Leave it behind as a view that keeps so long: '2 hours'.")] = "",
    limit: Annotated[int, typer.Option(help="End after so many rows; 0: at Ctrl-C.", min=0)] = 0,
    token: Secret = "",
) -> None:
    """Attach a query to a running network: all that its point retains, then what comes, as JSON lines.

    At the end the query is detached. With --keep it becomes a view and stays.
    """
    with refusals():
        client = ConsoleClient(url, token)
        text = Path(query).read_text() if query.endswith((".yaml", ".yml")) else query
        body = {"version": client.version(), "point": point, "query": text, "name": name, "keep": keep}
        asked = client.post("/api/attach", body)
        if asked["view"]:
            typer.echo(f"view '{asked['name']}' is attached to {point}")
            return
        typer.echo(f"attached as {asked['name']}; Ctrl-C ends it", err=True)
        try:
            _follow(client, asked["name"], limit)
        except KeyboardInterrupt:
            pass  # that is how a user ends it
        finally:
            client.post("/api/detach", {"version": client.version(), "name": asked["name"]})


def _follow(client: ConsoleClient, name: str, limit: int) -> None:
    after, shown = 0, 0
    while True:
        told = client.get(f"/api/attached/{quote(name)}/rows?after={after}")
        for row in told["rows"]:
            typer.echo(printable_line(json.dumps(row["tuple"])))
            shown += 1
            if limit and shown >= limit:
                return
        after = told["next"]
        if not told["rows"]:
            time.sleep(_POLL)


def apply(
    url: Url,
    net: Annotated[str, typer.Argument(metavar="NET", help=NET_HELP)],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    fresh_state: Annotated[
        bool, typer.Option("--fresh-state", help="Stateful boxes that changed start anew.")
    ] = False,
    token: Secret = "",
) -> None:
    """Change a running network into NET: tell what will happen, ask, then do it.

    Other sub-networks run on. An edit that fails leaves the old network running.
    """
    with refusals():
        client = ConsoleClient(url, token)
        body = {"version": client.version(), "yaml": to_yaml(load_network(net))}
        plan = client.post("/api/edit/preview", body)
        _must_be_good(plan)
        for line in (*plan["words"], *plan["effects"]):
            typer.echo(line)
        if not plan["words"]:
            return
        if not yes and not typer.confirm("apply?", err=True):
            raise typer.Exit(1)
        applied = client.post("/api/edit/apply", {**body, "fresh_state": fresh_state})
        blips = ", ".join(f"{sub} {seconds:.2f} s" for sub, seconds in applied["blips"].items())
        typer.echo(f"version {applied['version']} runs; pauses: {blips or 'none'}")


def _must_be_good(plan: JsonMapping) -> None:
    error = plan.get("error")
    if error:
        position = f"line {error['line']}: " if error.get("line") else ""
        raise PenstockError(
            position + error["problem"],
            found=error.get("found", ""),
            expected=error.get("expected", ""),
            hint=error.get("hint", ""),
        )
    if plan.get("needs_new_checkpoint"):
        raise PenstockError("this edit needs a new checkpoint", found=plan["needs_new_checkpoint"])
