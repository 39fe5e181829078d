"""The numpy arrays that Linear Road works on, named by the type of their elements.

Compiled loops read and write these arrays directly, so the element type is part of what they promise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
"""Text, byte by byte."""

Codes = npt.NDArray[np.int8]
"""Small codes, such as the reason why a row is refused."""

Int32s = npt.NDArray[np.int32]
"""Fields of rows: every field of Linear Road fits 32 bits."""

Int64s = npt.NDArray[np.int64]
"""Offsets, counts, and keys that combine several fields."""

Checksums = npt.NDArray[np.uint64]
"""Sums of hashes, which run over."""

Ints = npt.NDArray[np.signedinteger]
"""Whole numbers of any width."""

Bools = npt.NDArray[np.bool_]
"""A mask: one answer a row."""

Floats = npt.NDArray[np.floating]
"""Floating-point numbers of any width."""

Records = npt.NDArray[np.void]
"""Records with named fields, as a structured dtype describes them."""
