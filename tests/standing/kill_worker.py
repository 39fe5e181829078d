"""The process that the kill test kills: a network and its standing queries, driven by lines on stdin,
answering in JSON lines.

`python kill_worker.py FOLDER`; commands: register MODE TEXT | invoke HANDLE | idle | list.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.standing import StandingQueries
from standing.test_service import network


def main() -> None:
    folder = Path(sys.argv[1])
    with ps.Runtime(network(folder), checkpoint=folder / "ckpt", master="local[2]") as runtime:
        service = StandingQueries(runtime)
        say("ready")
        for line in sys.stdin:
            word, _, rest = line.strip().partition(" ")
            say(act(service, word, rest))


def act(service: StandingQueries, word: str, rest: str) -> Any:
    if word == "register":
        mode, _, text = rest.partition(" ")
        return service.register(text, mode=mode, client="test").id
    if word == "invoke":
        return sorted(list(row.values()) for row in service.invoke(rest).to_pylist())
    if word == "idle":
        return service.runtime.wait_idle(120)
    return [each["handle"] for each in service.list()]


def say(what: Any) -> None:
    print("ANSWER " + json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
