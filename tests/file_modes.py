"""Who may read what a run leaves behind."""

from __future__ import annotations

from pathlib import Path
from stat import S_IMODE


def open_to_others(root: Path) -> dict[str, str]:
    """Files and folders under `root` that others than their owner may read, with their modes."""
    modes = {path: S_IMODE(path.lstat().st_mode) for path in root.rglob("*") if not path.is_symlink()}
    return {str(path.relative_to(root)): oct(mode) for path, mode in modes.items() if mode & 0o077}
