"""Paths of files: any name that a file system allows is that one file.

A name may hold brackets, colons, newlines, or bytes that are no UTF-8. Python keeps such bytes as surrogates
in a text. Arrow takes the bytes. Spark takes a path for a pattern or a URI, so it gets only plain ones;
`connectors/files/parquet.py` reads the others, `engine/spark/exact_paths.py` those of points.
"""

from __future__ import annotations

import errno
import os
import re

import pyarrow as pa

# Neither a sign of a pattern or of a URI, nor a hidden last name, nor a letter that depends on the locale.
_PLAIN = re.compile(r"(?:[A-Za-z0-9_.+,@~ -]*/)*[A-Za-z0-9+,@~-][A-Za-z0-9_.+,@~-]*")


def is_plain(path: str) -> bool:
    r"""Whether Spark reads this very file under this name.

    >>> is_plain("/in/a-1.parquet"), is_plain("/in/a[1].parquet"), is_plain("/in/a:b"), is_plain("/in/_a")
    (True, False, False, False)
    """
    return _PLAIN.fullmatch(path) is not None


def is_resource_shortage(error: BaseException) -> bool:
    """Whether a file could not be read for want of descriptors, or of memory as the kernel tells it.

    Such a file may be good, and is read later. Arrow's own MemoryError does not count: a broken file asks for
    too much memory as well.

    >>> is_resource_shortage(OSError(errno.EMFILE, "too many open files"))
    True
    >>> is_resource_shortage(FileNotFoundError())
    False
    """
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def native_file(path: str) -> pa.NativeFile:
    """The file for Arrow's readers, whatever its name."""
    return pa.OSFile(os.fsencode(path))


def shown_path(path: str) -> str:
    r"""The path as valid text: bytes that are no UTF-8 are escaped.

    >>> shown_path("a\udcff.csv")
    'a\\xff.csv'
    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")
