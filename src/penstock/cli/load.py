"""The NET argument of the command line: a Network in a Python file, or a YAML file."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.model.errors import PenstockError, did_you_mean
from penstock.model.text.yaml_form import from_yaml
from penstock.model.writing.network import Network

NET_HELP = "A network: `file.py:name`, `file.py` with one Network in it, or a YAML file."
_NET = "file.py:name or a YAML file"


def load_network(net: str) -> Network:
    """Load the network that NET names."""
    file, name = _file_and_name(net)
    path = Path(file)
    if not path.exists():
        raise PenstockError(f"there is no file {file}", expected=_NET)
    if path.suffix in (".yaml", ".yml"):
        return from_yaml(path)
    if path.suffix != ".py":
        raise PenstockError(f"{file} is neither a Python nor a YAML file", expected=_NET)
    if path.is_dir():
        raise PenstockError(f"{file} is a directory", expected=_NET)
    return _from_python(path, name)


def _file_and_name(net: str) -> tuple[str, str]:
    """Split NET into file and name; the file's own name may contain a colon."""
    if Path(net).exists():
        return net, ""
    file, colon, name = net.rpartition(":")
    return (file, name) if colon else (net, "")


def _from_python(path: Path, name: str) -> Network:
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    with _users_file(path):
        spec.loader.exec_module(module)
    _by_value(module)
    networks = {key: value for key, value in vars(module).items() if isinstance(value, Network)}
    if not name and len(networks) == 1:
        return next(iter(networks.values()))
    chosen = getattr(module, name, None)
    if callable(chosen) and not isinstance(chosen, Network):
        with _users_file(path):
            chosen = chosen()
    if not isinstance(chosen, Network):
        raise _no_network(path, name, list(networks))
    return chosen


def _no_network(path: Path, name: str, known: list[str]) -> PenstockError:
    if name:
        has = ", ".join(known) or "none"
        return PenstockError(
            f"{path} has no Network named '{name}'", found=has, hint=did_you_mean(name, known)
        )
    if known:
        return PenstockError(
            f"{path} has several Networks: {', '.join(known)}", expected=f"{path}:{known[0]}"
        )
    return PenstockError(
        f"{path} has no Network at its top level",
        expected="`net = Network(...)` there, or file.py:name with a function `name` without parameters",
    )


@contextmanager
def _users_file(path: Path) -> Iterator[None]:
    """Report what the user's own code raises, with the line of their file.

    Penstock's own errors already name their line.
    """
    try:
        yield
    except PenstockError:
        raise
    except SyntaxError as error:
        line = f"{error.filename or path}:{error.lineno or 1}"
        raise PenstockError(f"{line}: no Python: {error.msg}", found=(error.text or "").strip()) from None
    except (Exception, SystemExit) as error:
        raise _raised(path, error) from None


def _raised(path: Path, error: BaseException) -> PenstockError:
    frames = traceback.extract_tb(error.__traceback__)
    mine = [frame for frame in frames if Path(frame.filename) == path] or frames
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    deepest = frames[-1]
    elsewhere = "" if deepest == mine[-1] else f"raised at {deepest.filename}:{deepest.lineno}"
    return PenstockError(f"{path}:{mine[-1].lineno}: {said}", found=mine[-1].line or "", hint=elsewhere)


def _by_value(module: object) -> None:
    """Pickle the file's functions by value, because workers on other machines do not have the file."""
    try:
        from pyspark import cloudpickle
    except ImportError:  # the model alone works without Spark
        return
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # it has no types
