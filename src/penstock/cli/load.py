"""NET on the command line: a Network in a Python file, or a YAML file; and how errors are shown."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from penstock.model.errors import PenstockError, did_you_mean
from penstock.model.network import Network
from penstock.model.yaml_form import from_yaml

NET_HELP = "A network: `file.py:name`, `file.py` with one Network in it, or a YAML file."


def load_network(net: str) -> Network:
    """The network that NET names."""
    file, _, name = net.partition(":")
    path = Path(file)
    if not path.exists():
        raise PenstockError(f"there is no file {file}; NET is file.py:name or a YAML file")
    if path.suffix in (".yaml", ".yml"):
        return from_yaml(path)
    if path.suffix != ".py":
        raise PenstockError(f"{file} is neither a Python nor a YAML file; NET is file.py:name or a YAML file")
    return _from_python(path, name)


def _from_python(path: Path, name: str) -> Network:
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    _by_value(module)
    found = {key: value for key, value in vars(module).items() if isinstance(value, Network)}
    if not name and len(found) == 1:
        return next(iter(found.values()))
    made = getattr(module, name, None)
    if callable(made) and not isinstance(made, Network):
        made = made()
    if not isinstance(made, Network):
        known = ", ".join(found) or "none"
        hint = did_you_mean(name, found) if name else ""
        raise PenstockError(f"{path} has no Network named '{name}'; it has: {known}. {hint}".rstrip(". "))
    return made


def _by_value(module: object) -> None:
    """Functions of the file go to the tasks as they are: workers on other machines do not have the file."""
    try:
        from pyspark import cloudpickle
    except ImportError:  # the model alone works without Spark
        return
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


@contextmanager
def told() -> Iterator[None]:
    """What Penstock raises on purpose is shown as text, without a traceback, exit code 2."""
    try:
        yield
    except (PenstockError, FileNotFoundError) as error:
        typer.secho(str(error), err=True, fg=typer.colors.RED if sys.stderr.isatty() else None)
        raise typer.Exit(2) from None
