"""What a result says about its run: command, commit, machine, versions, load."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

from penstock.linear_road.run.resource_use import machine as measured_machine
from penstock.linear_road.run.resource_use import versions

__all__ = ["ROOT", "command", "commit", "is_dirty", "load", "machine", "versions"]

ROOT = Path(__file__).resolve().parents[2]
_RESULTS = "benchmarks/results"


def command() -> str:
    """The command line as somebody would type it in the root of the repository."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return " ".join(["python -m", spec.name.removesuffix(".__main__"), *sys.argv[1:]])
    script = Path(sys.argv[0]).resolve()
    shown = script.relative_to(ROOT) if script.is_relative_to(ROOT) else script.name
    return " ".join(["python", str(shown), *sys.argv[1:]])


def commit(checkout: Path = ROOT) -> str | None:
    """The commit that was measured; None outside a repository."""
    return _git("rev-parse", "HEAD", at=checkout) or None


def is_dirty() -> bool | None:
    """Whether tracked files differ from the commit. Earlier results do not count: each run adds one."""
    changes = _git("status", "--porcelain", "--untracked-files=no", "--", ".", f":(exclude){_RESULTS}")
    return None if changes is None else bool(changes)


def _git(*words: str, at: Path = ROOT) -> str | None:
    try:
        ended = subprocess.run(["git", *words], cwd=at, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return ended.stdout.strip() if ended.returncode == 0 else None


def machine() -> dict[str, str | int | float]:
    """Cores, memory, processor and kernel."""
    facts = measured_machine()
    return {
        "cores": facts["cores"],
        "memory_gb": facts["memory_gb"],
        "processor": facts["processor"],
        "system": facts["system"],
        "kernel": platform.release(),
    }


def load() -> float:
    """How many processes wanted a core in the last minute."""
    return round(os.getloadavg()[0], 2)
