"""Followers of answers: each change is computed once for all who follow the same query.

A follower has a queue. One that reads too slowly for it is dropped, with the reason, since nothing else would
bound what it costs. A follower that reads nothing at all is disconnected by the server (`http.connections`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field

import pyarrow as pa
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from penstock.http.error_bodies import error_body
from penstock.http.errors import BusyError
from penstock.http.slow_work import SlowWork
from penstock.model.errors import PenstockError
from penstock.standing.answers.changes import Change, ChangeFollower
from penstock.standing.deadline import time_limit
from penstock.standing.errors import LimitError, QueryError, UnknownHandleError
from penstock.standing.limits import Limits
from penstock.standing.serving.json_rows import json_object
from penstock.standing.serving.outgoing import in_steps
from penstock.standing.serving.service import StandingQueries
from penstock.standing.serving.wakeups import Wakeups

_BEAT = 1.0  # seconds after which a silent stream of changes sends a sign of life
_A_TURN = 16  # followers that one turn of the event loop wakes
_PATIENCE = 2  # times the limit of an invocation: also the wait for a thread has an end
_SIGN_OF_LIFE = b": nothing new\n\n"
_END = b"event: end\ndata: {}\n\n"


@dataclass(eq=False)
class Follower:
    """One connection that follows an answer."""

    whole: bytes | None = None  # the first event, which may be longer than a queue
    waiting: deque[bytes] = field(default_factory=deque)
    size: int = 0  # bytes that wait behind it
    begun: bool = False  # it has got the whole answer
    ended: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self, event: bytes) -> None:
        """Give it the whole answer."""
        self.begun = True
        self.whole = event
        self.news.set()

    def offer(self, event: bytes, limits: Limits) -> None:
        """Put an event into its queue, or drop the follower if there is no room."""
        self.size += len(event)
        if len(self.waiting) >= limits.queued_events or self.size > limits.queued_bytes:
            problem = "this follower reads too slowly and was dropped"
            expected = f"at most {limits.queued_events} changes that wait"
            self.waiting.clear()
            self.whole = None
            self.end(_error(LimitError(problem, expected=expected, hint="follow again")))
            return
        self.waiting.append(event)
        self.news.set()

    def end(self, event: bytes) -> None:
        """Let this be the last event."""
        self.size += len(event)
        self.waiting.append(event)
        self.ended = True
        self.news.set()

    async def next(self) -> bytes | None:
        """The next event, a sign of life if there is none for a while, None at the end."""
        if self.whole is None and not self.waiting and not self.ended:
            self.news.clear()
            with contextlib.suppress(TimeoutError):
                # Not all at the same moment: they were woken together by the last change.
                await asyncio.wait_for(self.news.wait(), _BEAT * (1 + random.random()))
        if self.whole is not None:
            event, self.whole = self.whole, None
            return event
        if self.waiting:
            event = self.waiting.popleft()
            self.size -= len(event)
            return event
        return None if self.ended else _SIGN_OF_LIFE


@dataclass(eq=False)
class _FollowedAnswer:
    """One query that is followed, and what its followers know."""

    following: ChangeFollower
    members: set[Follower] = field(default_factory=set)
    joined: asyncio.Event = field(default_factory=asyncio.Event)
    whole: bytes | None = None  # the newest answer as an event, while there are newcomers
    counted: int = 0  # bytes that the service has counted for it

    @property
    def nbytes(self) -> int:
        answer = self.following.answer
        waiting = max((member.size for member in self.members), default=0)
        return (answer.nbytes if answer is not None else 0) + waiting + len(self.whole or b"")


class Followers:
    """All followers of a service. Every method runs in the event loop; what is slow runs in `work`."""

    def __init__(self, service: StandingQueries, work: SlowWork) -> None:
        self._service, self._work = service, work
        self._limits = service.engine.limits
        self._wakeups = Wakeups(service.engine)
        self._answers: dict[str, _FollowedAnswer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.count = 0
        self.nbytes = 0  # of all answers, with what waits for their followers

    def join(self, handle: str) -> Follower:
        """A new follower of a query; `leave` ends it."""
        if self.count >= self._limits.followers:
            raise LimitError(f"{self.count:,} follow already", expected=f"at most {self._limits.followers:,}")
        answer = self._answers.get(handle)
        if answer is None:
            answer = self._answers[handle] = _FollowedAnswer(ChangeFollower(self._service.engine, handle))
            task = asyncio.create_task(self._drive(handle, answer))
            self._tasks.add(task)  # the loop itself holds tasks only weakly
            task.add_done_callback(self._tasks.discard)
        follower = Follower()
        answer.members.add(follower)
        answer.joined.set()
        self.count += 1
        return follower

    def leave(self, handle: str, follower: Follower) -> None:
        """Forget a follower."""
        self.count -= 1
        answer = self._answers.get(handle)
        if answer is not None:
            answer.members.discard(follower)
            answer.joined.set()  # the last one to leave ends the task

    def end(self) -> None:
        """End all, because the service ends."""
        for answer in self._answers.values():
            for member in answer.members:
                member.end(_END)

    async def events(self, follower: Follower) -> AsyncIterator[bytes]:
        """The events for one follower."""
        while (event := await follower.next()) is not None:
            for part in in_steps(event):
                yield part

    async def _drive(self, handle: str, answer: _FollowedAnswer) -> None:
        """Compute the changes of one answer while somebody follows it."""
        last = _END
        try:
            with self._wakeups.subscribed() as news:
                while answer.members:
                    news.clear()
                    answer.joined.clear()
                    await self._step(answer)
                    await _first_of(news, answer.joined)
        except UnknownHandleError:
            pass  # unregistered
        except PenstockError as error:
            last = _error(error)
        finally:
            if self._answers.get(handle) is answer:
                del self._answers[handle]
            self._count(answer, 0)
            for member in answer.members:
                member.end(last)

    async def _step(self, answer: _FollowedAnswer) -> None:
        """Give all the newest change, and the whole answer to those who have just come."""
        self._service.freshness.check()
        following, first = answer.following, answer.following.answer is None
        with contextlib.suppress(BusyError):  # the next step brings the sum of both
            event = await self._slow(lambda: _event_of(following.step(), self._limits))
            if event is not None:
                answer.whole = event if first else None
                async for member in _in_turns(answer.members):
                    if member.begun and not member.ended:
                        member.offer(event, self._limits)
            await self._welcome(answer)
        self._count(answer, answer.nbytes)
        self._check_memory(answer)

    async def _welcome(self, answer: _FollowedAnswer) -> None:
        known = answer.following.answer
        newcomers = [member for member in answer.members if not member.begun and not member.ended]
        if not newcomers or known is None:
            answer.whole = None
            return
        if answer.whole is None:
            change = Change(answer.following.version, known, known.slice(0, 0))
            answer.whole = await self._slow(lambda: _event_of(change, self._limits)) or b""
        whole = answer.whole
        async for member in _in_turns(newcomers):
            member.begin(whole)

    async def _slow(self, function: Callable[[], bytes | None]) -> bytes | None:
        def work() -> bytes | None:
            with time_limit(self._limits.seconds):
                return function()

        return await self._work.run(work, _PATIENCE * self._limits.seconds)

    def _count(self, answer: _FollowedAnswer, size: int) -> None:
        # A running sum: to look at all answers for each of them would take the square of their number.
        self.nbytes += size - answer.counted
        answer.counted = size

    def _check_memory(self, newest: _FollowedAnswer) -> None:
        if self.nbytes > self._limits.followed_bytes:
            raise LimitError(
                "the answers that are followed take too much memory",
                found=f"{newest.counted >> 20:,} MB for this one",
                expected=f"at most {self._limits.followed_bytes >> 20:,} MB for all",
            )


class EventsResponse(StreamingResponse):
    """The answer for one follower; it leaves when the response ends, however that comes about."""

    def __init__(self, followers: Followers, handle: str) -> None:
        self._followers, self._handle = followers, handle
        self._follower = followers.join(handle)
        super().__init__(followers.events(self._follower), media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._followers.leave(self._handle, self._follower)


async def _in_turns(members: Iterable[Follower]) -> AsyncIterator[Follower]:
    """The members, a few in each turn of the event loop: all at once would hold up everybody else."""
    for number, member in enumerate(list(members)):
        if number % _A_TURN == 0:
            await asyncio.sleep(0)
        yield member


async def _first_of(*events: asyncio.Event) -> None:
    """Wait for any of some events, or for a beat: then the age of the network is looked at again."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=_BEAT, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()


def _event_of(change: Change | None, limits: Limits) -> bytes | None:
    if change is None:
        return None
    tables: dict[str, pa.Table] = {"added": change.added, "removed": change.removed}
    pieces = json_object({"version": change.version}, tables, limits.answer_bytes)
    return b"".join([b"event: change\nid: %d\ndata: " % change.version, *pieces, b"\n\n"])


def _error(error: PenstockError) -> bytes:
    body = error_body(error) if isinstance(error, QueryError) else {"error": "the service failed"}
    return f"event: error\ndata: {json.dumps(body)}\n\n".encode()
