"""The catalog: what the network is and how it has performed, in SQLite.

Aurora (Sect. 6) keeps it in an embedded store, too (A93). Any thread and any process may open it. Each thread
has its own connection. Readers never wait for writers (WAL), and writers wait for one another. The catalog
stays bounded: records of old trains are summed up and deleted. So counts over all time stay exact, while
their history is cut.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, astuple, replace
from pathlib import Path
from typing import Any

from penstock.model.boxes import Node
from penstock.model.qos import QoS
from penstock.store import durable
from penstock.store.catalog.record_types import (
    ArrowRecord,
    BoxCount,
    Event,
    InputLoad,
    Latency,
    NetworkVersion,
    NodeRecord,
    OutputSecond,
    SourceAccount,
    StorageLocation,
    Topology,
    Totals,
    TrainRecord,
)
from penstock.store.catalog.tables import (
    ACCOUNT,
    COUNTED,
    FORGET_LATENCIES,
    FORMAT,
    LATENCY,
    LOAD,
    ROLL_UP,
    TABLES,
)
from penstock.store.errors import StoreError
from penstock.store.locks import briefly_locked

SqlValue = None | int | float | str
_PATIENCE = 30.0  # seconds to wait for another process that writes
_OF_SUBNETWORKS = (
    "trains",
    "box_counts",
    "accounts",
    "sheds",
    "past_trains",
    "past_counts",
    "past_accounts",
)


class Catalog:
    """The catalog of a checkpoint, `<checkpoint>/catalog.db`; created on first use.

    `keep`: how many trains of each sub-network, latency windows of each output, and events keep their own
    record.
    """

    def __init__(self, path: Path | str, *, keep: int = 10_000) -> None:
        self.path, self.keep = Path(path), keep
        self._own = threading.local()
        self._connections: list[sqlite3.Connection] = []
        durable.make_directory(self.path.parent)
        # Switching to WAL does not wait for other processes, hence the lock.
        with briefly_locked(self.path.with_name(self.path.name + ".lock")):
            self.path.touch(mode=durable.FILE_MODE)  # SQLite gives its other files the same mode
            self._prepare()

    def _prepare(self) -> None:
        try:
            db = self._db()
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                db.execute("PRAGMA journal_mode = WAL")
                self._become(db, FORMAT, TABLES)
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"{self.path} is no catalog",
                found=str(error),
                hint="move it away: a new one is made at the next start",
            ) from None
        if version not in (0, FORMAT):
            raise StoreError(
                f"{self.path} was written by another version",
                found=f"format {version}",
                expected=f"format {FORMAT}",
                hint="read it with the version that wrote it, or start with a new checkpoint",
            )

    @staticmethod
    def _become(db: sqlite3.Connection, number: int, script: str) -> None:
        db.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")

    def _db(self) -> sqlite3.Connection:
        """The connection of the calling thread; transactions are opened by hand."""
        db: sqlite3.Connection | None = getattr(self._own, "db", None)
        if db is None:
            db = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            # The catalog only reports what happened, so it may lose the last moments before a power cut.
            db.execute("PRAGMA synchronous = NORMAL")
            self._own.db = db
            self._connections.append(db)
        return db

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        db = self._db()
        try:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
            raise  # a fault of the caller, not of the file
        except sqlite3.DatabaseError as error:
            raise self._broken(error) from None

    def _rows(self, sql: str, *values: SqlValue) -> list[tuple[Any, ...]]:
        try:
            return self._db().execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._broken(error) from None

    def _broken(self, error: sqlite3.DatabaseError) -> StoreError:
        hint = "if it is damaged, move it away: a new one is made at the next start"
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            hint = f"a process has kept it for {_PATIENCE:g} seconds; if one was suspended, end it"
        return StoreError(f"{self.path} cannot be used", found=str(error), hint=hint)

    def close(self) -> None:
        """Close the connections of all threads; no thread may be using the catalog."""
        while self._connections:
            self._connections.pop().close()
        self._own = threading.local()

    def record_network(
        self,
        name: str,
        text: str,
        nodes: Iterable[Node],
        *,
        form: str = "yaml",
        subnetworks: Mapping[str, str] | None = None,
        at: float | None = None,
    ) -> int:
        """Record a version of the network and its topology.

        A text equal to the newest version's makes no new version.
        """
        digest = hashlib.sha256(f"{name}\n{form}\n{text}".encode()).hexdigest()
        with self._writing() as db:
            newest = db.execute("SELECT version, hash FROM networks ORDER BY version DESC LIMIT 1").fetchone()
            if newest and newest[1] == digest:
                return int(newest[0])
            version = int(newest[0]) + 1 if newest else 1
            row = (version, name, form, text, digest, _now(at))
            db.execute("INSERT INTO networks VALUES (?, ?, ?, ?, ?, ?)", row)
            for position, node in enumerate(nodes):
                _insert_node(db, version, position, node, (subnetworks or {}).get(node.name, ""))
        return version

    def networks(self) -> list[NetworkVersion]:
        """All versions, oldest first."""
        return [NetworkVersion(*row) for row in self._rows("SELECT * FROM networks ORDER BY version")]

    def version(self) -> int:
        """The number of the newest version; 0 before any was recorded."""
        return int(self._rows("SELECT coalesce(max(version), 0) FROM networks")[0][0])

    def network(self, version: int) -> NetworkVersion | None:
        """One version; None if there is none of that number."""
        rows = self._rows("SELECT * FROM networks WHERE version = ?", version)
        return NetworkVersion(*rows[0]) if rows else None

    def topology(self, version: int | None = None) -> Topology | None:
        """The nodes and arrows of a version (default: the newest); None before any was recorded."""
        chosen = version if version is not None else self._rows("SELECT max(version) FROM networks")[0][0]
        nodes = self._rows(
            """SELECT name, kind, subnetwork, tag, description, grouping, qos FROM nodes
               WHERE version = ? ORDER BY position""",
            chosen,
        )
        if not nodes:
            return None
        arrows = self._rows(
            "SELECT tail, head, position FROM arrows WHERE version = ? ORDER BY head, position", chosen
        )
        records = tuple(
            NodeRecord(name, kind, sub, tag, text, tuple(json.loads(group)), _qos(graphs))
            for name, kind, sub, tag, text, group, graphs in nodes
        )
        return Topology(chosen, records, tuple(ArrowRecord(*row) for row in arrows))

    def record_train(self, record: TrainRecord) -> None:
        """Record what a train did; a replayed train replaces its first attempt."""
        sub, train = record.subnetwork, record.train
        with self._writing() as db:
            for table in ("box_counts", "accounts", "sheds"):
                db.execute(f"DELETE FROM {table} WHERE subnetwork = ? AND train = ?", (sub, train))
            row = (sub, train, record.start, record.end, record.rows_in, record.duration, record.cpu)
            more = (record.alone, record.decoded)
            db.execute("INSERT OR REPLACE INTO trains VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, *more))
            boxes = [(sub, train, *astuple(count)) for count in record.boxes]
            db.executemany("INSERT INTO box_counts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", boxes)
            accounts = [(sub, train, *astuple(account)) for account in record.accounts]
            db.executemany("INSERT INTO accounts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", accounts)
            sheds = [(sub, train, each.valve, each.offered, each.shed) for each in record.sheds]
            db.executemany("INSERT INTO sheds VALUES (?, ?, ?, ?, ?)", sheds)
            self._roll_up(db, sub)

    def forget_subnetwork(self, subnetwork: str) -> None:
        """Delete the figures of a sub-network; its name may be given to another one."""
        with self._writing() as db:
            for table in _OF_SUBNETWORKS:
                db.execute(f"DELETE FROM {table} WHERE subnetwork = ?", (subnetwork,))

    def has_train(self, subnetwork: str, train: int) -> bool:
        """Whether a train is recorded."""
        sql = "SELECT 1 FROM trains WHERE subnetwork = ? AND train = ?"
        return bool(self._rows(sql, subnetwork, train))

    def _roll_up(self, db: sqlite3.Connection, subnetwork: str) -> None:
        # Sum up in batches of a tenth: doing it for every train would cost more than the record itself.
        oldest = "SELECT train FROM trains WHERE subnetwork = ? ORDER BY train DESC LIMIT 1 OFFSET ?"
        if db.execute(oldest, (subnetwork, self.keep + self.keep // 10)).fetchone() is None:
            return
        (train,) = db.execute(oldest, (subnetwork, self.keep)).fetchone()
        for statement in ROLL_UP.split(";"):
            db.execute(statement, {"s": subnetwork, "t": train})

    def trains(self, subnetwork: str, last: int = 100) -> list[TrainRecord]:
        """The last trains of a sub-network, oldest first."""
        rows = self._rows(
            """SELECT train, start, end, rows_in, cpu, alone, decoded FROM trains
               WHERE subnetwork = ? ORDER BY train DESC LIMIT ?""",
            subnetwork,
            last,
        )
        records = [
            TrainRecord(
                subnetwork=subnetwork,
                train=train,
                start=start,
                end=end,
                rows_in=rows_in,
                boxes=self._boxes(subnetwork, train),
                accounts=self._accounts(subnetwork, train),
                cpu=cpu,
                alone=bool(alone),
                decoded=decoded,
            )
            for train, start, end, rows_in, cpu, alone, decoded in rows
        ]
        return records[::-1]

    def _boxes(self, subnetwork: str, train: int) -> tuple[BoxCount, ...]:
        sql = f"SELECT {COUNTED} FROM box_counts WHERE subnetwork = ? AND train = ? ORDER BY box"
        return tuple(_box_count(row) for row in self._rows(sql, subnetwork, train))

    def _accounts(self, subnetwork: str, train: int) -> tuple[SourceAccount, ...]:
        sql = f"SELECT {ACCOUNT} FROM accounts WHERE subnetwork = ? AND train = ? ORDER BY source"
        return tuple(SourceAccount(*row) for row in self._rows(sql, subnetwork, train))

    def accounts(self) -> dict[str, SourceAccount]:
        """What became of the tuples that each source offered, over all time."""
        rows = self._rows(f"SELECT {ACCOUNT} FROM account_totals ORDER BY source")
        return {row[0]: SourceAccount(*row) for row in rows}

    def totals(self) -> dict[str, Totals]:
        """Trains, tuples and time of each sub-network, over all time."""
        return {
            row[0]: Totals(*row)
            for row in self._rows("SELECT subnetwork, trains, rows_in, duration FROM totals")
        }

    def counts(self) -> dict[str, BoxCount]:
        """What each box did, over all time."""
        rows = self._rows(f"SELECT {COUNTED} FROM selectivities ORDER BY box")
        return {row[0]: _box_count(row) for row in rows}

    def selectivity(self, box: str, last: int | None = None) -> float | None:
        """Tuples out for each tuple in, over all time or the last trains; None if none came in."""
        if last is None:
            rows = self._rows("SELECT selectivity FROM selectivities WHERE box = ?", box)
            return rows[0][0] if rows else None
        sql = """SELECT CAST(sum(rows_out) AS REAL) / nullif(sum(rows_in), 0) FROM
                 (SELECT rows_in, rows_out FROM box_counts WHERE box = ? ORDER BY train DESC LIMIT ?)"""
        value: float | None = self._rows(sql, box, last)[0][0]
        return value

    def record_latency(self, latency: Latency) -> None:
        """Record the figures of one window of an output."""
        with self._writing() as db:
            insert = f"INSERT INTO latencies ({LATENCY}) VALUES (?, ?, ?, ?, ?, ?, ?)"
            row = db.execute(insert, astuple(latency)).lastrowid
            if row and row % 64 == 0:  # now and then is often enough
                db.execute(FORGET_LATENCIES, {"o": latency.output, "k": self.keep})

    def latency(self, output: str) -> Latency | None:
        """The newest window of an output."""
        return next(iter(self.latencies(output, last=1)), None)

    def latencies(self, output: str, last: int = 100) -> list[Latency]:
        """The last windows of an output, oldest first."""
        sql = f"SELECT {LATENCY} FROM latencies WHERE output = ? ORDER BY id DESC LIMIT ?"
        return [Latency(*row) for row in self._rows(sql, output, last)][::-1]

    def record_second(self, second: int, loads: Iterable[InputLoad], outputs: Iterable[OutputSecond]) -> None:
        """Record the load of inputs and what outputs did in a second. Both are kept for a few hours."""
        with self._writing() as db:
            insert = f"INSERT INTO loads ({LOAD}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            db.executemany(insert, [astuple(load) for load in loads])
            rows = [(o.output, o.second, json.dumps(o.delays), o.age, o.share) for o in outputs]
            db.executemany("INSERT OR REPLACE INTO output_seconds VALUES (?, ?, ?, ?, ?)", rows)
            if second % 64 == 0:  # now and then is often enough
                db.execute("DELETE FROM loads WHERE time < ?", (second - self.keep,))
                db.execute("DELETE FROM output_seconds WHERE second < ?", (second - self.keep,))

    def loads(self, seconds: float | None = None) -> list[InputLoad]:
        """The loads of the last seconds before the newest, oldest first; None: only the newest of each."""
        if seconds is None:
            sql = (
                f"SELECT {LOAD} FROM loads WHERE id IN (SELECT max(id) FROM loads GROUP BY input, subnetwork)"
            )
            return [InputLoad(*row) for row in self._rows(sql)]
        sql = f"SELECT {LOAD} FROM loads WHERE time > (SELECT max(time) FROM loads) - ? ORDER BY id"
        return [InputLoad(*row) for row in self._rows(sql, seconds)]

    def output_seconds(self, seconds: int) -> dict[str, list[OutputSecond]]:
        """The last seconds of each output in which anything was due, oldest first."""
        sql = """SELECT output, second, delays, age, share FROM output_seconds
                 WHERE second > (SELECT max(second) FROM output_seconds) - ? ORDER BY second"""
        outputs: dict[str, list[OutputSecond]] = {}
        for output, second, delays, age, share in self._rows(sql, seconds):
            known = tuple((delay, tuples) for delay, tuples in json.loads(delays))
            outputs.setdefault(output, []).append(OutputSecond(output, second, known, age, share))
        return outputs

    def record_location(self, name: str, kind: str, path: Path | str, at: float | None = None) -> None:
        """Record where something is kept; a later record replaces an earlier one."""
        with self._writing() as db:
            db.execute(
                "INSERT OR REPLACE INTO locations VALUES (?, ?, ?, ?)", (name, kind, str(path), _now(at))
            )

    def locations(self) -> list[StorageLocation]:
        """Checkpoints and tables, by name."""
        return [
            StorageLocation(*row)
            for row in self._rows("SELECT name, kind, path, time FROM locations ORDER BY name, kind")
        ]

    def record_event(self, kind: str, subject: str, at: float | None = None, **detail: object) -> None:
        """Record an event; details are anything JSON can hold, as in `blip=0.31`."""
        with self._writing() as db:
            row = (kind, subject, _now(at), json.dumps(detail))
            db.execute("INSERT INTO events (kind, subject, time, detail) VALUES (?, ?, ?, ?)", row)
            db.execute("DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?", (self.keep,))

    def events(self, kind: str | None = None, subject: str | None = None, last: int = 1000) -> list[Event]:
        """The last events, oldest first, of one kind or subject if given."""
        sql = """SELECT kind, subject, time, detail FROM events WHERE (?1 IS NULL OR kind = ?1)
                 AND (?2 IS NULL OR subject = ?2) ORDER BY id DESC LIMIT ?3"""
        rows = self._rows(sql, kind, subject, last)
        return [Event(kind, subject, at, json.loads(detail)) for kind, subject, at, detail in rows][::-1]


def _insert_node(db: sqlite3.Connection, version: int, position: int, node: Node, subnetwork: str) -> None:
    about = node.about
    group = json.dumps(about.group)
    graphs = None if node.qos is None else json.dumps(asdict(node.qos))
    row = (version, position, node.name, node.kind, subnetwork, about.tag, about.description, group, graphs)
    db.execute("INSERT INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    arrows = [(version, tail, node.name, index) for index, tail in enumerate(node.inputs)]
    db.executemany("INSERT INTO arrows VALUES (?, ?, ?, ?)", arrows)


def _qos(graphs: str | None) -> QoS | None:
    return None if graphs is None else QoS(**json.loads(graphs))


def _box_count(row: tuple[Any, ...]) -> BoxCount:
    count = BoxCount(*row)
    return replace(count, estimated=bool(count.estimated))


def _now(at: float | None) -> float:
    return time.time() if at is None else at
