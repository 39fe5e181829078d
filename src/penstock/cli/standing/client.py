"""`penstock standing register | invoke | list | unregister | follow | streams`: a client of the service.

The client does not import Spark.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPResponse
from typing import Annotated, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import typer

from penstock.cli.printable import printable_line
from penstock.cli.refusals import refusals
from penstock.cli.standing.commands import PORT, Service
from penstock.model.errors import PenstockError
from penstock.model.json_types import JsonObject

Handle = Annotated[str, typer.Argument(metavar="HANDLE", help="What `register` printed.")]
Form = Annotated[str, typer.Option("--format", help="table, csv or json (lines).")]


def register(
    context: typer.Context,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help='"SELECT ... FROM ... WHERE ... BEGIN ... END ..."')
    ],
    client: Annotated[str, typer.Option(help="A label, by which `list --client` finds it.")] = "",
    mode: Annotated[
        str | None, typer.Option(help="How results are kept: P, C or NoMat; by a rule if left out.")
    ] = None,
) -> None:
    """Register a query and print its handle."""
    with refusals():
        registered = _ask(context, "POST", "/queries", {"query": query, "client": client, "mode": mode})
        typer.echo(registered["handle"])


def invoke(
    context: typer.Context,
    handle: Handle,
    at: Annotated[
        str | None, typer.Option(help="As of an earlier event time: ISO text, or seconds since 1970.")
    ] = None,
    form: Form = "table",
    limit: Annotated[int, typer.Option(help="Show at most this many rows (0: all).")] = 0,
) -> None:
    """Print the current answer of a query, and on standard error how old it is."""
    with refusals():
        extra = "?" + urlencode({"at": at}) if at is not None else ""
        answer = _ask(context, "GET", f"/queries/{quote(handle)}/result{extra}")
        _show(answer["columns"], answer["rows"][:limit] if limit else answer["rows"], form)
        typer.echo(f"as of {answer['as_of'] or 'no tuple'}, {answer['age']:g} s old", err=True)


def list_queries(
    context: typer.Context,
    client: Annotated[str | None, typer.Option(help="Only those with this label.")] = None,
    form: Form = "table",
) -> None:
    """List your registered queries."""
    with refusals():
        extra = "?" + urlencode({"client": client}) if client is not None else ""
        queries = _ask(context, "GET", f"/queries{extra}")
        names = ["handle", "client", "mode", "invocations", "query"]
        if any(each.get("broken") for each in queries):
            names.append("broken")
        _show(names, [{name: each.get(name) for name in names} for each in queries], form)


def unregister(context: typer.Context, handle: Handle) -> None:
    """End a query."""
    with refusals():
        _ask(context, "DELETE", f"/queries/{quote(handle)}")


def streams(context: typer.Context, form: Form = "table") -> None:
    """List the streams that queries may name, with columns and retention."""
    with refusals():
        rows = _ask(context, "GET", "/streams")
        _show(["stream", "columns", "keep", "tuples", "now"], rows, form)


def follow(context: typer.Context, handle: Handle) -> None:
    """Print rows that enter the answer (+) and leave it (-), until Ctrl-C."""
    with refusals():
        try:
            for change in _changes(context, handle):
                for sign, rows in (("+", change["added"]), ("-", change["removed"])):
                    for row in rows:
                        typer.echo(f"{sign} {json.dumps(row)}")
        except KeyboardInterrupt:
            return


def _changes(context: typer.Context, handle: str) -> Iterator[JsonObject]:
    with _open(context, "GET", f"/queries/{quote(handle)}/changes") as answer:
        kind = ""
        for line in answer:
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                kind = text.removeprefix("event: ")
            elif text.startswith("data: ") and kind == "change":
                yield json.loads(text.removeprefix("data: "))
            elif text.startswith("data: ") and kind == "error":
                said = json.loads(text.removeprefix("data: "))
                parts = {name: said.get(name, "") for name in ("found", "expected", "hint")}
                raise PenstockError(said.get("problem", ""), **parts)
            elif text.startswith("data: ") and kind == "end":
                return


def _open(context: typer.Context, method: str, path: str, body: object = None) -> HTTPResponse:
    service: Service = context.obj
    url = f"{service.url}{path}"
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    if service.token:
        headers["Authorization"] = f"Bearer {service.token}"
    request = Request(url, data, headers, method=method)  # noqa: S310 - the user's own URL
    try:
        answer: HTTPResponse = urlopen(request)  # noqa: S310 - the user's own URL
    except HTTPError as error:
        text = error.read().decode(errors="replace")
        try:
            hint = "give your secret with --token or PENSTOCK_TOKEN" if error.code == 401 else ""
            raise PenstockError(json.loads(text)["error"], hint=hint) from None
        except (ValueError, KeyError):
            raise PenstockError(f"{url} answered {error.code}: {text}") from None
    except (URLError, ValueError) as error:
        reason = getattr(error, "reason", error)
        hint = f"start one with: penstock standing serve NET --port {PORT}, or give --url"
        raise PenstockError(f"no service at {service.url}: {reason}", hint=hint) from None
    return answer


def _ask(context: typer.Context, method: str, path: str, body: object = None) -> Any:
    with _open(context, method, path, body) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def _show(columns: list[str], rows: list[JsonObject], form: str) -> None:
    if form not in ("table", "csv", "json"):
        raise PenstockError(f"no format '{form}'", expected="table, csv or json")
    if form == "json":
        for row in rows:
            typer.echo(json.dumps(row))
    elif form == "csv":
        import csv

        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        shown = printable_line if sys.stdout.isatty() else str
        writer.writerows([_cell(row[name], shown) for name in columns] for row in rows)
    else:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        # As Text: square brackets in a value are no markup. Escapes are shown, not sent to the terminal.
        table = Table()
        for name in columns:
            table.add_column(Text(printable_line(name)))
        for row in rows:
            table.add_row(*(Text(_cell(row[name], printable_line)) for name in columns))
        wide = None if sys.stdout.isatty() else int(os.environ.get("COLUMNS", "200"))
        Console(width=wide).print(table)


def _cell(value: object, shown: Callable[[str], str]) -> str:
    return "" if value is None else shown(str(value))
