"""Names that a file system allows and that programs stumble over."""

from __future__ import annotations

import os
import random

KNOWN = [
    "a[1]", "{a,b}", "*", "?", "[*]", "a:b", ":", "file:", "file:a", "a\\b", "\\", " ", "a b", " a ", "n\nl",
    "\t", "\r", "%41", "%", "#", "a#b", "q?x=1&y", "'", '"', "`", "$HOME", "~", "a=b", "=", ",", ";", "|",
    "<>", "é",
    "日本", "\u202e", "\x01", "\x7f", "..a", "a..", "-", "--help", "a.parquet", "a.csv.csv", "CON",
    "x" * 200, "!(a)", "{a..b}", "^a$", "a+b", "@", "a\u0301", "(a)", "part-0", "\udcff", "a\udc80b",
]  # fmt: skip
_ALPHABET = "ab1 []{}*?\\:%#'\"\n\t,;=&|$~^!()-.+@é日\udcff\udc81\x01"


def odd_names(count: int, dice: random.Random) -> list[str]:
    """So many different names, none of which says that it shall be left alone."""
    names = {name for name in KNOWN if not name.startswith((".", "_"))}
    while len(names) < count:
        name = "".join(dice.choice(_ALPHABET) for _ in range(dice.randrange(1, 12)))
        if not name.startswith((".", "_")) and _is_valid(name):
            names.add(name)
    chosen = sorted(names)
    dice.shuffle(chosen)
    return chosen[:count]


def _is_valid(name: str) -> bool:
    """A text that stands for bytes: pieces of UTF-8 in a row would become a letter."""
    return os.fsdecode(os.fsencode(name)) == name
