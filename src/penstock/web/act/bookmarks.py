"""Bookmarks (A36): named places in the picture, kept in the checkpoint."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from penstock.model.json_types import JsonObject
from penstock.store.durable import make_directory, read_record, write_record
from penstock.web.errors import RefusedChangeError, UnknownNameError

_MOST, _BYTES, _NAME = 200, 4_096, 100


class Bookmarks:
    """The bookmarks of a checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        self._path, self._lock = checkpoint / "console" / "bookmarks.json", threading.Lock()

    def list(self) -> list[JsonObject]:
        """All, by name."""
        return [{"name": name, "view": view} for name, view in sorted(self._read().items())]

    def put(self, name: str, view: object) -> None:
        """Add or replace one."""
        if not name.strip() or len(name) > _NAME or len(json.dumps(view)) > _BYTES:
            raise RefusedChangeError(
                "this cannot be a bookmark", expected=f"a name of up to {_NAME} characters, a view of 4 kB"
            )
        with self._lock:
            known = self._read()
            if name not in known and len(known) >= _MOST:
                raise RefusedChangeError(f"there are {_MOST} bookmarks already", hint="remove some")
            self._write({**known, name: view})

    def remove(self, name: str) -> None:
        """Forget one."""
        with self._lock:
            known = self._read()
            if name not in known:
                raise UnknownNameError(f"no bookmark '{name}'")
            self._write({key: view for key, view in known.items() if key != name})

    def _read(self) -> JsonObject:
        return read_record(self._path)["bookmarks"] if self._path.exists() else {}

    def _write(self, bookmarks: JsonObject) -> None:
        make_directory(self._path.parent)
        write_record(self._path, {"bookmarks": bookmarks})
