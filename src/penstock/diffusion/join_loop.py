"""The simulator's inner loop, compiled: one pass over the arrivals in order of time.

A queue is a ring of `room` entries. `heads` is the oldest tuple kept, `following` the next to be processed
(the paper's pointers p1, p2), `tails` the next free entry. Arrays are indexed by slot (a join at a server)
and side.
"""
# numba infers the types; annotations would only repeat them.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, check-untyped-defs=False

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.model.diffused.owner import producer

_producer = njit(nogil=True)(producer)


@njit(cache=True, nogil=True)
def _oldest(v, hosted, stamps, following, tails, slot_of, room):
    """The queue of server v whose next unprocessed tuple is the oldest: its slot and side."""
    best, slot, side = np.inf, -1, -1
    for h in range(hosted.shape[1]):
        j = hosted[v, h]
        if j < 0:
            break
        q = slot_of[v, j]
        for s in range(2):
            if following[q, s] < tails[q, s]:
                at = stamps[q, s, following[q, s] % room]
                if at < best:
                    best, slot, side = at, q, s
    return slot, side


@njit(cache=True, nogil=True)
def _compare(v, q, s, stamps, epochs, owners, masters, heads, following, window, room):
    """Join the next tuple of a queue with the other queue's window: (operations, tuples expired)."""
    o, mine = 1 - s, following[q, s] % room
    at, expired, operations = stamps[q, s, mine], 0, 0
    while heads[q, o] < following[q, o] and stamps[q, o, heads[q, o] % room] < at - window[o]:
        heads[q, o] += 1
        expired += 1
    for i in range(heads[q, o], following[q, o]):
        other = i % room
        if s == 0:
            left, right = mine, other
        else:
            left, right = other, mine
        who = _producer(
            epochs[q, 0, left],
            masters[q, 0, left],
            owners[q, 0, left],
            epochs[q, 1, right],
            masters[q, 1, right],
            owners[q, 1, right],
        )
        operations += who == v
    return operations, expired


@njit(cache=True, nogil=True)
def _expire(v, now, hosted, stamps, heads, following, tails, slot_of, window, room):
    """Drop what is processed and out of reach of every tuple still to be processed; returns how many."""
    gone = 0
    for h in range(hosted.shape[1]):
        if hosted[v, h] < 0:
            break
        q = slot_of[v, hosted[v, h]]
        for s in range(2):
            o = 1 - s
            coming = stamps[q, o, following[q, o] % room] if following[q, o] < tails[q, o] else now
            while heads[q, s] < following[q, s] and stamps[q, s, heads[q, s] % room] < coming - window[s]:
                heads[q, s] += 1
                gone += 1
    return gone


@njit(cache=True, nogil=True)
def run_joins(
    time,
    join,
    side,
    seconds,
    speed,
    memory,
    per_operation,
    per_tuple,
    hosts,
    hosted,
    master,
    rule,
    round_robin,
    replace,
    eager,
    sample,
    window,
    bins,
    bin_seconds,
    per_server,
):
    nodes, joins, k = len(speed), hosts.shape[0], hosts.shape[1]
    room = np.max(memory) + 1
    slot_of = np.full((nodes, joins), -1, np.int64)
    slots = 0
    for j in range(joins):
        for i in range(k):
            slot_of[hosts[j, i], j] = slots
            slots += 1
    stamps = np.zeros((slots, 2, room))
    epochs, owners = np.zeros((slots, 2, room), np.int32), np.zeros((slots, 2, room), np.int32)
    masters = np.zeros((slots, 2, room), np.bool_)
    heads, following, tails = (
        np.zeros((slots, 2), np.int64),
        np.zeros((slots, 2), np.int64),
        np.zeros((slots, 2), np.int64),
    )
    used, waiting, free_at = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.zeros(nodes)
    processed, looked = np.zeros(nodes, np.bool_), np.zeros(nodes)
    epoch, until, turn = np.zeros(joins, np.int64), np.full(joins, -1.0), np.zeros(joins, np.int64)
    counts, sampled = np.zeros((joins, 2), np.int64), sample
    joining, receiving, received, dropped, replaced = per_server
    switches, longest = 0, max(window[0], window[1])

    for n in range(len(time) + 1):
        now = time[n] if n < len(time) else seconds
        # who is master: counted over a sampling period (S12)
        while rule != 2 and now >= sampled:
            for j in range(joins):
                wanted = master[j]
                if counts[j, 0] != counts[j, 1]:
                    wanted = 0 if (counts[j, 0] > counts[j, 1]) == (rule == 0) else 1
                if wanted != master[j]:
                    master[j], epoch[j], until[j] = wanted, epoch[j] + 1, sampled + longest
                    switches += 1
                counts[j, 0] = counts[j, 1] = 0
            sampled += sample
        last = n == len(time)
        j = 0 if last else join[n]
        s = 0 if last else side[n]
        for i in range(nodes if last else k):
            v = i if last else hosts[j, i]
            while waiting[v] > 0 and free_at[v] < now:
                q, which = _oldest(v, hosted, stamps, following, tails, slot_of, room)
                done, expired = _compare(
                    v, q, which, stamps, epochs, owners, masters, heads, following, window, room
                )
                following[q, which] += 1
                processed[v] = True
                waiting[v] -= 1
                used[v] -= expired
                lasts = done * per_operation / speed[v]
                # what would end after the run counts with the part that lies in it
                part = 1.0 if lasts == 0 else min(1.0, (seconds - free_at[v]) / lasts)
                free_at[v] += lasts
                joining[v] += part * done * per_operation
                bins[min(len(bins) - 1, int(min(free_at[v], seconds) / bin_seconds))] += part * done
        if last:
            break
        counts[j, s] += 1
        # the owner: the least loaded server or the next one (S08)
        owner = hosts[j, turn[j] % k]
        if round_robin == 0 and s == master[j]:
            for i in range(1, k):
                v = hosts[j, (turn[j] + i) % k]
                if waiting[v] * speed[owner] < waiting[owner] * speed[v]:
                    owner = v
        turn[j] += 1
        alone = s == master[j] and now > until[j]
        for i in range(k):
            v = hosts[j, i]
            if alone and v != owner:
                continue
            free_at[v] = max(free_at[v], now) + per_tuple / speed[v]
            receiving[v] += per_tuple
            received[v] += 1
            q = slot_of[v, j]
            # a full server that has processed nothing since the last look has little to drop: look again
            # after a while
            if eager and used[v] >= memory[v] and (processed[v] or now > looked[v] + 0.5):
                processed[v], looked[v] = False, now
                used[v] -= _expire(v, now, hosted, stamps, heads, following, tails, slot_of, window, room)
            if used[v] >= memory[v]:
                if not replace or heads[q, s] == tails[q, s]:
                    dropped[v] += 1
                    continue
                if heads[q, s] == following[q, s]:
                    following[q, s] += 1
                    waiting[v] -= 1
                heads[q, s] += 1
                used[v] -= 1
                replaced[v] += 1
            at = tails[q, s] % room
            stamps[q, s, at], epochs[q, s, at], owners[q, s, at], masters[q, s, at] = (
                now,
                epoch[j],
                owner,
                s == master[j],
            )
            tails[q, s] += 1
            used[v] += 1
            waiting[v] += 1
    return switches
