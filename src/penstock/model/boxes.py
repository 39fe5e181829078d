"""Boxes: the primitives of Aurora (Sect. 2.1) as frozen descriptions. What a box does lives in the engines.

A box names the nodes that feed it (`inputs`); an arrow is such a pair. Each box declares its traits, which
the optimizer, scheduler and shedder read instead of asking for its class.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import Flag, auto
from fractions import Fraction
from typing import ClassVar, NamedTuple

from penstock.model.durations import Count, Extent, Time
from penstock.model.errors import Where
from penstock.model.formats.description import SinkFormat, SourceFormat
from penstock.model.join_distribution import Diffusion
from penstock.model.qos import QoS
from penstock.model.types import Schema
from penstock.model.user_functions import Function


class Trait(Flag):
    """What the rest of the system may do with a node. Ask for the trait, not for the class.

    Rules of the optimizer and of shedding ask for classes: they must know what a box computes.
    """

    ENTERS = auto()  # tuples enter the network here
    KEPT = auto()  # keeps its tuples for readers to come: connection points and views
    LEAVES = auto()  # tuples leave here to an application
    STATELESS = auto()  # a tuple's fate depends on that tuple alone
    STATEFUL = auto()  # keeps something between trains
    OWN_PARTS = auto()  # keeps its state in parts that its own logic writes
    SELECTS = auto()  # lets fewer tuples through than come, and refuses none
    SHEDDABLE = auto()  # tuples may be shed in front of it; see checks/shedding.py for count windows


Keys = tuple[str, ...]
NO_PROMISE = -(2**63) + 1  # the horizon of an arrow about which nothing is known


@dataclass(frozen=True)
class About:
    """What a person sees of a node: tag, description, manual page, and its group or superbox (A32, A34)."""

    tag: str = ""
    description: str = ""
    manual: str = ""
    group: tuple[str, ...] = ()


class Stretch(NamedTuple):
    """A box as written and the stretch of a running box's work, from 0 to 1, that it would do."""

    name: str
    begin: Fraction
    end: Fraction


@dataclass(frozen=True, kw_only=True)
class Node:
    """Anything in a network that has a name: sources, boxes, connection points, views, outputs."""

    kind: ClassVar[str] = "node"
    traits: ClassVar[Trait] = Trait.STATELESS

    name: str
    inputs: tuple[str, ...] = ()
    about: About = field(default=About())
    where: Where = field(default=Where(), compare=False)
    origin: tuple[str, ...] = field(default=(), compare=False)
    twins: tuple[Stretch, ...] = field(default=(), compare=False)
    # By which grain tuples may be shed in front of a box: 'tuples', 'windows', 'keys', 'never'; '': as its
    # kind allows.
    shed_by: str = ""

    @property
    def origins(self) -> tuple[str, ...]:
        """The names it was written under. Only rewrites that merge or split boxes set `origin`.

        >>> Filter(name="slow").origins, Filter(name="both", origin=("slow", "near")).origins
        (('slow',), ('slow', 'near'))
        """
        return self.origin or (self.name,)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """All boxes as written whose work is done here: those in it, one behind the other, and their twins.

        A twin is a box, or one of a chain of boxes, that was written once more and does not run itself. Of
        several boxes that run as one, each is thought to do an equal stretch of the work.
        """
        count = len(self.origins)
        own = (
            Stretch(name, Fraction(k, count), Fraction(k + 1, count)) for k, name in enumerate(self.origins)
        )
        return (*own, *self.twins)

    @property
    def stands_for(self) -> tuple[str, ...]:
        """The names of all boxes as written whose work is done here.

        >>> also = Filter(name="also_slow").stretches
        >>> Filter(name="slow", twins=also).stands_for
        ('slow', 'also_slow')
        """
        return tuple(stretch.name for stretch in self.stretches)

    @property
    def is_box(self) -> bool:
        """True for what works on tuples; False where they enter, are kept or leave."""
        return not self.traits & (Trait.ENTERS | Trait.KEPT | Trait.LEAVES)

    @property
    def user_function(self) -> Function | None:
        """The function that a user gave, if the box has one."""
        function: Function | None = getattr(self, "function", None)
        return function

    @property
    def spread(self) -> bool:
        """True if tuples may go elsewhere than the hash of their key says: only some joins."""
        return False

    @property
    def qos(self) -> QoS | None:
        """The quality of service that it is to give: only outputs and views state one."""
        return None

    @property
    def memory(self) -> int | None:
        """How long a tuple stays in its state, in microseconds; None: nobody can say."""
        return 0 if Trait.STATELESS in self.traits else None

    def partition_keys(self, index: int, stream_keys: Keys) -> Keys | None:
        """Tuples of input `index` that agree in these columns must meet in one task; None: none need meet."""
        del index
        return None if Trait.STATELESS in self.traits else stream_keys

    def carries(self, keys: Keys) -> bool:
        """True if these columns leave with the values with which they came in.

        A user's function that produces a column of such a name is taken at its word; the engine checks it.
        """
        del keys
        return True

    def promise(self, horizon: int) -> int:
        """The horizon behind the box: what it gives is no older, if it gets nothing older than `horizon`."""
        return horizon


@dataclass(frozen=True, kw_only=True)
class Source(Node):
    """Where tuples enter (A02).

    `lateness`: how far behind the newest tuple of earlier trains a tuple may still be.
    `whole`: the source promises that tuples of one timestamp never come in two trains, so a time is complete
    as soon as it is seen. `idle`: after this long without a tuple, others no longer wait for this input.
    `stays`: what was read can be read again later, so that state can be rebuilt from it; None: as its format
    says.
    """

    kind: ClassVar[str] = "source"
    traits: ClassVar[Trait] = Trait.STATELESS | Trait.ENTERS

    format: SourceFormat
    schema: Schema
    timestamp: str | None = None
    lateness: int = 0
    whole: bool = False
    idle: int | None = 10_000_000
    stays: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Filter(Node):
    """Passes tuples for which the predicate (Spark SQL, or a function batch -> booleans) is true (A14).

    `rowwise`: the function promises that its answer about a row depends on that row's columns `reads` alone,
    and that it fails for no row. The optimizer moves only functions that promise this.
    """

    kind: ClassVar[str] = "filter"
    traits: ClassVar[Trait] = Trait.STATELESS | Trait.SELECTS | Trait.SHEDDABLE

    predicate: str = ""
    function: Function | None = None
    reads: tuple[str, ...] = ()
    rowwise: bool = False


@dataclass(frozen=True, kw_only=True)
class Map(Node):
    """Applies expressions (or a function batch -> batch) to each tuple (A16). `keep`: other columns stay.

    `rowwise`: what the function promises, as with Filter.
    """

    kind: ClassVar[str] = "map"
    traits: ClassVar[Trait] = Trait.STATELESS | Trait.SHEDDABLE

    columns: tuple[tuple[str, str], ...] = ()
    keep: bool = True
    function: Function | None = None
    reads: tuple[str, ...] = ()
    rowwise: bool = False
    produces: Schema = field(default=Schema())

    def carries(self, keys: Keys) -> bool:
        """Unless an expression gives one of them another value."""
        return not any(column in keys and text != column for column, text in self.columns)


@dataclass(frozen=True, kw_only=True)
class Drop(Node):
    """Drops tuples at a rate 0..1 that can change while running (A15).

    A hash of name, seed and `_seq` decides about each tuple.
    """

    kind: ClassVar[str] = "drop"
    traits: ClassVar[Trait] = Trait.STATELESS | Trait.SELECTS

    rate: float = 0.0
    seed: int = 0

    @property
    def lot(self) -> int:
        """What the hash starts from. It holds the name, so two boxes in a row choose independently.

        >>> Drop(name="a").lot != Drop(name="b").lot
        True
        """
        digest = hashlib.blake2b(f"{self.seed} {self.name}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 1  # a BIGINT that is not negative


@dataclass(frozen=True, kw_only=True)
class Union(Node):
    """Merges streams of one schema."""

    kind: ClassVar[str] = "union"
    traits: ClassVar[Trait] = Trait.STATELESS | Trait.SHEDDABLE


@dataclass(frozen=True, kw_only=True)
class GroupBy(Node):
    """Partitions the tuples of one or more streams into streams of equal key values (A17); no aggregate."""

    kind: ClassVar[str] = "group_by"
    traits: ClassVar[Trait] = Trait.STATELESS | Trait.SHEDDABLE

    keys: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Windowed(Node):
    """What Tumble and Slide share.

    They compute aggregates (name, Spark SQL), or call a function table -> table for each window.
    Output columns: keys, the timestamp column, then the aggregates. `stamp`: which tuple of the window gives
    the timestamp: 'earliest' (A21) or 'latest'. A count window with 'latest' that the end of input cuts short
    has the time of that end. `window_start()` and `window_end()` may be used in time windows.
    """

    traits: ClassVar[Trait] = Trait.STATEFUL | Trait.SHEDDABLE

    size: Extent = Time(60_000_000)
    aggregates: tuple[tuple[str, str], ...] = ()
    function: Function | None = None
    reads: tuple[str, ...] = ()
    produces: Schema = field(default=Schema())
    stamp: str = "earliest"

    @property
    def ordered(self) -> bool:
        """Count windows and user functions depend on the order of tuples, time aggregates do not."""
        return isinstance(self.size, Count) or self.function is not None

    @property
    def step(self) -> Extent:
        """How far apart two windows begin."""
        return self.size

    @property
    def memory(self) -> int | None:
        return self.size.us if isinstance(self.size, Time) else None

    def promise(self, horizon: int) -> int:
        """Open windows hold tuples back, as far as the oldest tuple in them."""
        return _behind_windows(self.size, self.stamp, horizon, aligned=self.kind == "tumble")


@dataclass(frozen=True, kw_only=True)
class Tumble(Windowed):
    """Disjoint windows of time or of tuples, each tuple in exactly one (A11)."""

    kind: ClassVar[str] = "tumble"


@dataclass(frozen=True, kw_only=True)
class Slide(Windowed):
    """Rolling windows of `size` that advance by `every` (A10): window k is [k * every, k * every + size)."""

    kind: ClassVar[str] = "slide"

    every: Extent = Time(60_000_000)

    @property
    def step(self) -> Extent:
        """How far apart two windows begin."""
        return self.every


@dataclass(frozen=True, kw_only=True)
class Latch(Node):
    """Keeps state for ever (A12).

    With aggregates: like Tumble of `size`, but each answer covers all tuples so far. With a function:
    `function(batch, state) -> (batch, changed)` where `state` holds the rows of the batch's keys (keys, then
    the columns of `state`; a key seen first has no row) and `changed` the rows that are new or different.
    Several inputs are merged by timestamp, ties by input order; the batch then has a column `input` (INT).
    """

    kind: ClassVar[str] = "latch"
    traits: ClassVar[Trait] = Trait.STATEFUL

    size: Extent | None = None
    aggregates: tuple[tuple[str, str], ...] = ()
    function: Function | None = None
    state: Schema = field(default=Schema())
    reads: tuple[str, ...] = ()
    produces: Schema = field(default=Schema())
    stamp: str = "earliest"

    @property
    def step(self) -> Extent | None:
        """With aggregates: how far apart two windows begin, as with Tumble."""
        return self.size

    def promise(self, horizon: int) -> int:
        """With aggregates as Tumble; a function answers at once."""
        if self.size is None or self.function is not None:
            return horizon
        return _behind_windows(self.size, self.stamp, horizon, aligned=True)


@dataclass(frozen=True, kw_only=True)
class ColumnLatch(Node):
    """Keeps state for ever, as columns of the whole partition: a Latch for those who count the nanoseconds.

    `logic` makes an object for each partition, with three methods. `process(inputs, until, final)` gets one
    table for each input, in order of time and arrival, all before `until` (microseconds): nothing older comes
    any more. It returns the columns `produces`, which hold the timestamp column. `changes()` tells what
    became of the state since it was last asked: {part: columns}, or None for a part that is gone; a part is
    written once and never changed. `restore(parts)` takes over a mapping of all parts, each read from disk
    only when it is looked at. A partition holds all tuples of a key. A fourth one, `figures()`, may tell what
    was counted since it was last asked, {name: whole number}: it is summed over the partitions and stands
    with the counts of the train (`Runtime.on_train`).
    """

    kind: ClassVar[str] = "column_latch"
    traits: ClassVar[Trait] = Trait.STATEFUL | Trait.OWN_PARTS

    logic: Function
    produces: Schema = field(default=Schema())


@dataclass(frozen=True, kw_only=True)
class Resample(Node):
    """Interpolates at each multiple of `every` between two tuples at most `limit` apart (A13).

    Actual tuples pass; `columns` (numeric) become DOUBLE, linear in between; the other columns repeat the
    earlier tuple; the column `synthetic` tells which is which.
    """

    kind: ClassVar[str] = "resample"
    traits: ClassVar[Trait] = Trait.STATEFUL

    every: int = 1_000_000
    limit: int = 10_000_000
    columns: tuple[str, ...] = ()

    @property
    def memory(self) -> int:
        return self.limit

    def promise(self, horizon: int) -> int:
        """Between two actual tuples lie synthetic ones, up to `limit` old."""
        return horizon - self.limit


@dataclass(frozen=True, kw_only=True)
class Join(Node):
    """Pairs tuples of two streams whose distance in time is within a bound (A18, S01).

    `on`: equal columns (left, right); `predicate`: any further condition over the output columns; `within`:
    (W1, W2): right may come up to W1 after left, left up to W2 after right, ends included. Output: left
    columns, then right columns except those of `on` with the same name; another name that stands on both
    sides gets `suffix` on the right. The pair's timestamp is the earlier one. `distribution` ('hash',
    'diffused', 'auto'), `servers` (None: one in each partition) and `diffusion` say where the pairs are made,
    never which.
    """

    kind: ClassVar[str] = "join"
    traits: ClassVar[Trait] = Trait.STATEFUL | Trait.SHEDDABLE

    on: tuple[tuple[str, str], ...] = ()
    predicate: str = ""
    within: tuple[int, int] = (0, 0)
    suffix: str = "_right"
    distribution: str = "hash"
    servers: int | None = None
    diffusion: Diffusion = field(default=Diffusion())

    @property
    def spread(self) -> bool:
        """True if the join has servers of its own: then the hash of a key does not decide where it goes."""
        return self.distribution != "hash" or (self.servers is not None and bool(self.on))

    @property
    def memory(self) -> int:
        return max(self.within)

    def partition_keys(self, index: int, stream_keys: Keys) -> Keys:
        """The columns of `on`, whatever the streams are grouped by."""
        del stream_keys
        return tuple(pair[index] for pair in self.on)

    def carries(self, keys: Keys) -> bool:
        """Only the left columns of `on` are those by which both sides met."""
        return keys == tuple(pair[0] for pair in self.on)

    def promise(self, horizon: int) -> int:
        """A pair has the earlier of two timestamps, which lie up to the longer side of `within` apart."""
        return horizon - max(self.within)


@dataclass(frozen=True, kw_only=True)
class Kept(Node):
    """What connection points and views share: they keep their tuples for a time, for readers to come (A26).

    They promise all of them, so nothing above is ever shed, unless they say `shed`.
    """

    traits: ClassVar[Trait] = Trait.STATELESS | Trait.KEPT

    keep: int = 7_200_000_000
    shed: bool = False


@dataclass(frozen=True, kw_only=True)
class ConnectionPoint(Kept):
    """An arc where boxes come and go while it runs (A25, A70)."""

    kind: ClassVar[str] = "connection_point"

    key: str | None = None


@dataclass(frozen=True, kw_only=True)
class View(Kept):
    """A path with no application yet (A28): one may connect at any time; its QoS tells its importance."""

    kind: ClassVar[str] = "view"

    qos: QoS | None = None


@dataclass(frozen=True, kw_only=True)
class Output(Node):
    """Where tuples leave to an application, with the QoS that governs the path (A05, A24)."""

    kind: ClassVar[str] = "output"
    traits: ClassVar[Trait] = Trait.STATELESS | Trait.LEAVES

    to: SinkFormat
    qos: QoS | None = None


@dataclass(frozen=True)
class Arrow:
    """Tuples flow from `tail` to the `index`-th input of `head`."""

    tail: str
    head: str
    index: int = 0


def _behind_windows(size: Extent, stamp: str, horizon: int, *, aligned: bool) -> int:
    """Windows without overlap (`aligned`) with the earliest stamp go back to the start of the open one."""
    if not isinstance(size, Time):
        # holds at the end of input too: windows that it cuts short get this time if their own is older
        return NO_PROMISE if stamp == "earliest" else horizon
    if aligned and stamp == "earliest":
        return horizon // size.us * size.us
    return horizon - size.us
