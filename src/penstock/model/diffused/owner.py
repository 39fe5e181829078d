"""The owner rule: which server produces a pair, so that each is produced exactly once (S07-S09).

Every tuple carries the epoch in which it arrived, an owner (one of the servers), and whether its stream was
master then. A master's tuple is sent to its owner only, a slave's tuple to all servers. The paper gives no
protocol for swapping the roles, and a plain swap loses and doubles pairs: a tuple that lies at one server
only may meet a partner that is now sent to one other server only. So after a switch both streams are sent
everywhere until no tuple of before is in reach, and of the servers that hold both tuples one is chosen: the
owner of the tuple that was master in the OLDER of the two epochs. It is at its owner; the other one came to
all servers, as a slave of that epoch or in the transition of a later one.

A join by hash is the case in which both streams are master and the owner is the hash of the key.
"""

from __future__ import annotations


def producer(
    left_epoch: int,
    left_master: bool,
    left_owner: int,
    right_epoch: int,
    right_master: bool,
    right_owner: int,
) -> int:
    """The server that produces the pair. Plain Python, so that numba can compile it for the simulator.

    Left was master in epoch 0, right in epoch 1; the left tuple is the older one, so its owner produces the
    pair:

    >>> producer(0, True, 2, 1, True, 5)
    2
    """
    if left_epoch <= right_epoch:
        return left_owner if left_master else right_owner
    return right_owner if right_master else left_owner


def decided_by_left(left_epoch: int, left_master: bool, right_epoch: int, right_master: bool) -> bool:
    """The same rule for tuples of one epoch each: whether the left tuple's owner produces the pair.

    >>> decided_by_left(0, False, 0, True), decided_by_left(3, True, 1, False)
    (False, True)
    """
    chosen = producer(left_epoch, left_master, 1, right_epoch, right_master, 0)
    return bool(chosen)
