"""`penstock lr`: the four tools of Linear Road for any engine. Nothing here imports Spark.

Each tool's module holds plain functions; this one only gives them their names.
"""

from __future__ import annotations

import typer

from penstock.cli import lr_drive, lr_generate, lr_validate

app = typer.Typer(
    help="Linear Road kit: traffic generator, history generator, data driver, validator.",
    no_args_is_help=True,
)
app.command("generate")(lr_generate.generate)
app.command("describe")(lr_generate.describe)
app.command("history")(lr_drive.history)
app.command("drive")(lr_drive.drive)
app.command("validate")(lr_validate.validate)

if __name__ == "__main__":
    app()
