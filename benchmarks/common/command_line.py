"""The command line that every benchmark has."""

from __future__ import annotations

import argparse


def options(doc: str | None) -> argparse.ArgumentParser:
    """A parser with --quick, --seed and --no-result; --help shows the docstring."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--quick", action="store_true", help="a small case, to see that the script works")
    parser.add_argument("--seed", type=int, default=1, help="of all random data (default: 1)")
    parser.add_argument("--no-result", action="store_true", help="print only, write no JSON")
    return parser


def given(chosen: argparse.Namespace) -> dict[str, object]:
    """The options of a script beyond those that every benchmark has."""
    shared = ("quick", "seed", "no_result")
    return {name: value for name, value in vars(chosen).items() if name not in shared}
