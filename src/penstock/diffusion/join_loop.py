"""The simulator's inner loop, compiled: one pass over the arrivals in order of time.

`v` is a server, `j` a join, `q` the slot of a join at a server, `s` a side (0 or 1) and `o` the other one.
"""
# ruff: noqa: ANN001, ANN201, ANN202 - numba infers the types; annotations would only repeat them
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, check-untyped-defs=False

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.model.diffused.owner import producer

_LOOK_AGAIN = 0.5  # seconds after which a full server looks once more for expired tuples

_producer = njit(nogil=True)(producer)


@njit(cache=True, nogil=True)
def run_joins(time, join, side, queues, servers, joins, rules, figures):
    """Simulate all arrivals; gives how often a join changed its master."""
    switches, sampled = 0, rules.sample
    for n in range(len(time)):
        now, j, s = time[n], join[n], side[n]
        while rules.adapts and now >= sampled:
            switches += _choose_masters(sampled, queues, joins, rules)
            sampled += rules.sample
        for i in range(joins.hosts.shape[1]):
            _work(joins.hosts[j, i], now, queues, servers, rules, figures)
        joins.counts[j, s] += 1
        _route(j, s, now, queues, servers, joins, rules, figures)
    while rules.adapts and rules.seconds >= sampled:
        switches += _choose_masters(sampled, queues, joins, rules)
        sampled += rules.sample
    for v in range(len(servers.speed)):
        _work(v, rules.seconds, queues, servers, rules, figures)
    return switches


@njit(cache=True, nogil=True)
def _choose_masters(now, queues, joins, rules):
    """Who is master, from the tuples counted in a sampling period (S12); gives how many joins changed."""
    changed, longest = 0, max(queues.window[0], queues.window[1])
    for j in range(joins.hosts.shape[0]):
        wanted = joins.master[j]
        first, second = joins.counts[j, 0], joins.counts[j, 1]
        if first != second:
            wanted = 0 if (first > second) == rules.higher else 1
        if wanted != joins.master[j]:
            # Until the old windows have passed, all servers get the tuples of both streams.
            joins.master[j], joins.until[j] = wanted, now + longest
            joins.epoch[j] += 1
            changed += 1
        joins.counts[j, 0] = joins.counts[j, 1] = 0
    return changed


@njit(cache=True, nogil=True)
def _work(v, now, queues, servers, rules, figures):
    """Let a server process waiting tuples, oldest first, until `now`."""
    while servers.waiting[v] > 0 and servers.free_at[v] < now:
        q, s = _oldest(v, queues)
        operations, expired = _compare(v, q, s, queues)
        queues.following[q, s] += 1
        servers.processed[v] = True
        servers.waiting[v] -= 1
        servers.used[v] -= expired
        lasts = operations * rules.per_operation / servers.speed[v]
        # What would end after the run counts with the part that lies in it.
        part = 1.0 if lasts == 0 else min(1.0, (rules.seconds - servers.free_at[v]) / lasts)
        servers.free_at[v] += lasts
        figures.joining[v] += part * operations * rules.per_operation
        at = int(min(servers.free_at[v], rules.seconds) / rules.bin_seconds)
        figures.bins[min(len(figures.bins) - 1, at)] += part * operations


@njit(cache=True, nogil=True)
def _oldest(v, queues):
    """The queue of server v whose next unprocessed tuple is the oldest: its slot and side."""
    best, slot, side = np.inf, -1, -1
    for h in range(queues.hosted.shape[1]):
        j = queues.hosted[v, h]
        if j < 0:
            break
        q = queues.slot_of[v, j]
        for s in range(2):
            if queues.following[q, s] < queues.tails[q, s]:
                at = queues.stamps[q, s, queues.following[q, s] % queues.room]
                if at < best:
                    best, slot, side = at, q, s
    return slot, side


@njit(cache=True, nogil=True)
def _compare(v, q, s, queues):
    """Join the next tuple of a queue with the other queue's window: (operations, tuples expired)."""
    room, stamps, heads, following = queues.room, queues.stamps, queues.heads, queues.following
    o, mine = 1 - s, following[q, s] % room
    at, expired, operations = stamps[q, s, mine], 0, 0
    while heads[q, o] < following[q, o] and stamps[q, o, heads[q, o] % room] < at - queues.window[o]:
        heads[q, o] += 1
        expired += 1
    for i in range(heads[q, o], following[q, o]):
        other = i % room
        if s == 0:
            left, right = mine, other
        else:
            left, right = other, mine
        who = _producer(
            queues.epochs[q, 0, left],
            queues.masters[q, 0, left],
            queues.owners[q, 0, left],
            queues.epochs[q, 1, right],
            queues.masters[q, 1, right],
            queues.owners[q, 1, right],
        )
        operations += who == v
    return operations, expired


@njit(cache=True, nogil=True)
def _route(j, s, now, queues, servers, joins, rules, figures):
    """Send a tuple to its owner, or to all servers of the join; each receives it at a cost."""
    owner = _owner(j, s, servers, joins, rules)
    joins.turn[j] += 1
    alone = s == joins.master[j] and now > joins.until[j]
    for i in range(joins.hosts.shape[1]):
        v = joins.hosts[j, i]
        if alone and v != owner:
            continue
        servers.free_at[v] = max(servers.free_at[v], now) + rules.per_tuple / servers.speed[v]
        figures.receiving[v] += rules.per_tuple
        figures.received[v] += 1
        q = queues.slot_of[v, j]
        if _has_room(v, q, s, now, queues, servers, rules, figures):
            at = queues.tails[q, s] % queues.room
            queues.stamps[q, s, at], queues.epochs[q, s, at] = now, joins.epoch[j]
            queues.owners[q, s, at], queues.masters[q, s, at] = owner, s == joins.master[j]
            queues.tails[q, s] += 1
            servers.used[v] += 1
            servers.waiting[v] += 1


@njit(cache=True, nogil=True)
def _owner(j, s, servers, joins, rules):
    """The server that owns a tuple: the least loaded one for the master stream, else the next (S08)."""
    k, turn = joins.hosts.shape[1], joins.turn[j]
    owner = joins.hosts[j, turn % k]
    if rules.least_loaded and s == joins.master[j]:
        for i in range(1, k):
            v = joins.hosts[j, (turn + i) % k]
            if servers.waiting[v] * servers.speed[owner] < servers.waiting[owner] * servers.speed[v]:
                owner = v
    return owner


@njit(cache=True, nogil=True)
def _has_room(v, q, s, now, queues, servers, rules, figures):
    """Whether a server can keep one more tuple of a queue; a full one drops it, or gives up an old one."""
    full = servers.used[v] >= servers.memory[v]
    # A full server that has processed nothing since the last look has little to drop.
    if rules.eager and full and (servers.processed[v] or now > servers.looked[v] + _LOOK_AGAIN):
        servers.processed[v], servers.looked[v] = False, now
        servers.used[v] -= _expire(v, now, queues)
    if servers.used[v] < servers.memory[v]:
        return True
    if not rules.replace or queues.heads[q, s] == queues.tails[q, s]:
        figures.dropped[v] += 1
        return False
    if queues.heads[q, s] == queues.following[q, s]:
        queues.following[q, s] += 1
        servers.waiting[v] -= 1
    queues.heads[q, s] += 1
    servers.used[v] -= 1
    figures.replaced[v] += 1
    return True


@njit(cache=True, nogil=True)
def _expire(v, now, queues):
    """Drop what is processed and out of reach of every tuple still to be processed; returns how many."""
    room, stamps = queues.room, queues.stamps
    heads, following, tails = queues.heads, queues.following, queues.tails
    gone = 0
    for h in range(queues.hosted.shape[1]):
        if queues.hosted[v, h] < 0:
            break
        q = queues.slot_of[v, queues.hosted[v, h]]
        for s in range(2):
            o = 1 - s
            coming = stamps[q, o, following[q, o] % room] if following[q, o] < tails[q, o] else now
            limit = coming - queues.window[s]
            while heads[q, s] < following[q, s] and stamps[q, s, heads[q, s] % room] < limit:
                heads[q, s] += 1
                gone += 1
    return gone
