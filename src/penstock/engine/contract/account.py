"""The account at entry: what became of every tuple that a source offered to a train.

`offered` is counted in the input before anything is decoded: lines of text, rows in the footers of Parquet
files. The other numbers are counted behind the decoder. So the sum proves that no tuple got lost on the way
in, and none came twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass

from penstock.model.errors import PenstockError


@dataclass(frozen=True)
class Account:
    """Tuples of one source, in one train or in many.

    `dead`: refused at entry as malformed or without a time. What a later box refuses was let in. `shed`:
    dropped under overload by a valve (`valve.py`), whatever the tuple held.
    """

    offered: int = 0
    let_in: int = 0
    dead: int = 0
    late: int = 0
    shed: int = 0

    @classmethod
    def of_counts(cls, counts: Mapping[str, int]) -> Account:
        """From the counts of the source's node, whose 'dead' include the late ones.

        >>> Account.of_counts({"offered": 9, "in": 9, "out": 6, "dead": 3, "late": 1})
        Account(offered=9, let_in=6, dead=2, late=1, shed=0)
        """
        late = counts.get("late", 0)
        offered, let_in, shed = (counts.get(name, 0) for name in ("offered", "out", "shed"))
        return cls(offered, let_in, counts.get("dead", 0) - late, late, shed)

    def __add__(self, other: Account) -> Account:
        """Both together."""
        return Account(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))

    @property
    def balanced(self) -> bool:
        """Whether every tuple offered is accounted for.

        >>> Account(offered=9, let_in=6, dead=2, late=1).balanced
        True
        """
        return self.offered == self.let_in + self.dead + self.late + self.shed


class AccountError(PenstockError):
    """Tuples were lost or doubled on their way in, or counted twice: Spark may repeat a task."""


def check_accounts(accounts: Mapping[str, Account], train: int) -> None:
    """Raise an error if a source's account does not add up: its train must not count."""
    for source, account in accounts.items():
        if not account.balanced:
            raise AccountError(
                f"source '{source}', train {train}: tuples were lost or doubled on their way in",
                found=f"{account.offered} offered, but {account.let_in} let in, {account.dead} dead, "
                f"{account.late} late, {account.shed} shed",
                expected="offered = let in + dead + late + shed",
                hint="nothing of this train was published; the reader of this source has a fault, "
                "or its input changed while it was read",
            )
