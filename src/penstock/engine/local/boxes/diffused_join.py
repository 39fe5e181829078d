"""The diffused join in plain loops (Gu and Yu, Fig. 3; S06-S09, S12): a proxy, k servers with two lists each.

Without a bound on memory it gives what `JoinLogic` gives, which tests prove; then the reference runs
`JoinLogic`. With a bound pairs are lost, and which ones depends on the servers: then the reference runs this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from penstock.engine.local.boxes.join import JoinLogic
from penstock.engine.local.key_hash import key_hash
from penstock.engine.local.rows import Answer, Row
from penstock.model.boxes import Join
from penstock.model.diffused.memory import does_not_fit
from penstock.model.diffused.owner import producer
from penstock.model.diffused.roles import HASH, NEVER, Report, Roles, first_roles, step
from penstock.model.types import SEQ, STAMP, StreamType

SERVERS = 2  # if the join does not say how many: the Spark engine has one in each partition


@dataclass(frozen=True)
class ServerTuple:
    """A tuple at a server, with what the owner rule asks for."""

    row: Row
    owner: int
    epoch: int
    master: bool


@dataclass
class Server:
    """One server: what it keeps of each side, and what it did in this train."""

    number: int
    sides: tuple[list[ServerTuple], list[ServerTuple]] = field(default_factory=lambda: ([], []))
    operations: int = 0
    dropped: int = 0
    replaced: int = 0

    @property
    def held(self) -> int:
        return len(self.sides[0]) + len(self.sides[1])


class DiffusedJoin(JoinLogic):
    """Routes tuples to servers and collects their pairs; `forced` is the scheme that a test asks for."""

    def __init__(self, node: Join, inputs: list[StreamType], output: StreamType) -> None:
        super().__init__(node, inputs, output)
        self.roles: Roles = first_roles(node, SERVERS)
        self.servers = [Server(number) for number in range(self.roles.servers)]
        self.forced: str | None = None
        self.reports: list[Report] = []
        self.turn = 0

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        in_time, late = self.gate.admit(inputs)
        answer = Answer(dead=late)
        sent = self._route(in_time)
        reached = self.gate.act(horizons)
        for server in self.servers:
            # Of a final train nothing is kept: only its own tuples can still meet.
            self._serve(server, sent[server.number], (inf, inf) if final else reached, answer)
        for server in self.servers:
            self._forget(server, reached, final=final)
        self.reports = [self._report(server, sent[server.number]) for server in self.servers]
        # The horizons after this train hold for the tuples of the next one.
        self.roles = step(self.node, self.roles, self.reports, (reached[0], reached[1]), self.forced)
        return answer

    def _route(self, inputs: list[list[Row]]) -> list[list[tuple[int, ServerTuple]]]:
        """What comes to each server: (side, tuple), in order of time."""
        came = sorted(
            ((s, row) for s, rows in enumerate(inputs) for row in rows),
            key=lambda c: (c[1][STAMP], c[0], c[1][SEQ]),
        )
        sent: list[list[tuple[int, ServerTuple]]] = [[] for _ in self.servers]
        for side, row in came:
            held = ServerTuple(row, self._owner(side, row), self.roles.epoch, self.roles.master(side))
            # A slave's tuple must meet the master's wherever they are. After a switch of roles both sides go
            # to all servers for a while.
            targets = range(len(self.servers)) if self.roles.everywhere(side) else (held.owner,)
            for target in targets:
                sent[target].append((side, held))
        return sent

    def _owner(self, side: int, row: Row) -> int:
        if self.roles.scheme == HASH:
            # A whole number may meet an equal fraction on the other side, so all numbers are hashed alike.
            key = [float(v) if isinstance(v, int) else v for v in (row[pair[side]] for pair in self.node.on)]
            return key_hash(0, key) % len(self.servers)
        self.turn += 1
        return self.roles.wheel[self.turn % len(self.roles.wheel)]

    def _serve(
        self, server: Server, came: list[tuple[int, ServerTuple]], horizons: tuple[float, ...], answer: Answer
    ) -> None:
        server.operations = server.dropped = server.replaced = 0
        memory, policy = self.node.diffusion.memory, self.node.diffusion.when_full
        for side, held in came:
            if memory is not None and policy == "drop":
                now = held.row[STAMP]
                # Tuples come in order of time, so what this one cannot reach makes room. Not beyond the
                # horizons: tuples of later trains may be older than this one.
                self._let_go(server, (min(now, horizons[0]), min(now, horizons[1])))
                if server.held >= memory:
                    server.dropped += 1
                    continue
            for other in server.sides[1 - side]:
                left, right = (held, other) if side == 0 else (other, held)
                self._compare(server, left, right, answer)
            server.sides[side].append(held)

    def _compare(self, server: Server, left: ServerTuple, right: ServerTuple, answer: Answer) -> None:
        # Several servers may hold both tuples. The owner rule lets one of them give the pair.
        chosen = producer(left.epoch, left.master, left.owner, right.epoch, right.master, right.owner)
        if chosen != server.number or not self._near(left.row, right.row):
            return
        server.operations += 1
        if self._equal(left.row, right.row):
            self._give(left.row, right.row, answer)

    def _let_go(self, server: Server, horizons: tuple[float, ...]) -> None:
        """Drop what no tuple at or after these times (of left and right) can reach (S04)."""
        after, before = self.node.within
        for side, reach, horizon in ((0, after, horizons[1]), (1, before, horizons[0])):
            server.sides[side][:] = [h for h in server.sides[side] if h.row[STAMP] + reach >= horizon]

    def _forget(self, server: Server, horizons: tuple[int, ...], *, final: bool) -> None:
        self._let_go(server, (inf, inf) if final else horizons)
        memory = self.node.diffusion.memory
        if memory is not None and server.held > memory:
            self._give_way(server, server.held - memory)

    def _give_way(self, server: Server, excess: int) -> None:
        if self.node.diffusion.when_full != "replace":
            held = len(server.sides[0]), len(server.sides[1])
            raise does_not_fit(self.node, server.number, len(self.servers), held, 0)
        # The oldest go: they would soon be out of reach anyway.
        oldest = sorted(((h.row[STAMP], s, n) for s in (0, 1) for n, h in enumerate(server.sides[s])))[
            :excess
        ]
        for side in (0, 1):
            gone = {n for _, s, n in oldest if s == side}
            server.sides[side][:] = [h for n, h in enumerate(server.sides[side]) if n not in gone]
        server.replaced = excess

    def _report(self, server: Server, came: list[tuple[int, ServerTuple]]) -> Report:
        def of(side: int) -> list[ServerTuple]:
            return [held for s, held in came if s == side]

        stamps: list[int] = [held.row[STAMP] for _, held in came]
        return Report(
            server.number,
            (sum(h.owner == server.number for h in of(0)), sum(h.owner == server.number for h in of(1))),
            (len(of(0)), len(of(1))),
            (
                max((h.row[STAMP] for h in of(0)), default=NEVER),
                max((h.row[STAMP] for h in of(1)), default=NEVER),
            ),
            min(stamps, default=None),
            server.operations,
            (len(server.sides[0]), len(server.sides[1])),
            dropped=server.dropped,
            replaced=server.replaced,
        )
