"""Whether the packages that HTTP needs are installed."""

from __future__ import annotations

from importlib.util import find_spec

from penstock.model.errors import PenstockError

_PACKAGES = ("fastapi", "uvicorn")


def require_web() -> None:
    """Refuse to start a service without the packages of the extra `web`."""
    if any(find_spec(package) is None for package in _PACKAGES):
        raise PenstockError("the service needs packages of the extra 'web': pip install 'penstock[web]'")
