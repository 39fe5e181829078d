"""Unions, groups and joins that must be refused."""

from __future__ import annotations

import penstock as ps
from model.wrong_networks.cases import cars, case


@case
def union_of_different_columns():
    stream = cars()
    stream.union(stream.select("time", "vid", "spd"))


@case
def union_of_different_order():
    stream = cars()
    stream.select("time", "vid", "spd").union(stream.select("time", "spd", "vid"))


@case
def union_stamped_and_not():
    net = ps.Network("n")
    cars(net).union(cars(net, "more", timestamp=None))


@case
def union_grouped_differently():
    stream = cars()
    stream.group_by("vid").union(stream.group_by("seg"))


@case
def group_by_unknown():
    cars().group_by("segment")


@case
def group_by_nothing():
    cars().group_by()


@case
def group_by_timestamp():
    cars().group_by("time")


@case
def join_key_unknown():
    stream = cars()
    stream.join(stream, on=[("vid", "car")], within="1 minute")


@case
def join_key_types():
    stream = cars()
    stream.join(stream, on=[("vid", "plate")], within="1 minute")


@case
def join_without_timestamp():
    net = ps.Network("n")
    cars(net).join(cars(net, "more", timestamp=None), on="vid", within="1 minute")


@case
def join_predicate():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", where="spd_rigth > spd")


@case
def join_distribution_unknown():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", distribution="difused")


@case
def join_master_unknown():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", distribution="diffused", master="fastest")


@case
def join_servers():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", distribution="diffused", servers=0)


@case
def join_threshold():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", distribution="auto", threshold=70)


@case
def join_memory():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", distribution="diffused", memory=0)


@case
def join_full_without_memory():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", distribution="diffused", when_full="drop")


@case
def join_sample():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", distribution="diffused", sample=0)


@case
def join_hash_with_servers():
    stream = cars()
    stream.join(stream, on="vid", within="1 minute", servers=4, memory=10)


@case
def join_within_no_duration():
    stream = cars()
    stream.join(stream, on="vid", within="soon")


@case
def join_star_without_a_time():
    stream = cars()
    ps.join(stream.select("vid"), stream, stream, on="vid", within="1 minute", shape="star")


@case
def join_star_around_pairs():
    stream = cars()
    pairs = stream.join(stream, on="vid", within="1 minute", name="pairs")
    ps.join(pairs, stream, stream, on="vid", within="1 minute", shape="star")
