"""The network: sources, superboxes, outputs with the delays of the benchmark."""

from __future__ import annotations

from pathlib import Path

from penstock.model.network import Network


def network(history: Path | None, source: Path, answers: Path, clock: Path | None = None) -> Network:
    """Linear Road: what a driver delivers to `source` is answered to `answers`.

    `source`: the directory that `penstock lr drive --to` fills (it may still be empty or missing). `history`: a directory with
    TollHistory and SegmentHistory, as `penstock lr history` or the validator take it; None: there is none.
    `answers`: gets one directory for each output (`tolls`, `alerts`, `balances`, `daily`, `travel`), each with CSV files of
    finished rows in the field order of the page, type in front. `clock`: the file or directory with the clock of the
    run (`Clock.load`), by default `source`; it is read when the first answer is written. At maximum speed Emit = Time.
    """
    raise NotImplementedError("the network is being built")
