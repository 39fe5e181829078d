"""`penstock lr`: the four tools of Linear Road for any engine. Nothing here imports Spark.

Each tool's module holds plain functions; this one only gives them their names.
"""

from __future__ import annotations

import importlib

import typer

app = typer.Typer(
    help="Linear Road kit: traffic generator, history generator, data driver, validator.",
    no_args_is_help=True,
)

_COMMANDS: dict[str, tuple[str, ...]] = {
    "penstock.cli.lr_generate": ("generate", "describe"),
    "penstock.cli.lr_drive": ("history", "drive"),
    "penstock.cli.lr_validate": ("validate",),
}

for _module, _names in _COMMANDS.items():
    try:
        _tools = importlib.import_module(_module)
    except ModuleNotFoundError as _error:
        # Only a tool that is not there yet is left out; a broken one must be seen.
        if _error.name != _module:
            raise
        continue
    for _name in _names:
        app.command(_name)(getattr(_tools, _name))

if __name__ == "__main__":
    app()
