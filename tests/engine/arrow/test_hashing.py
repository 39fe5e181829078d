"""The vectorised hash is Spark's: checked against the xxhash package and values that Spark gave."""

import struct

import numpy as np
import xxhash

from penstock.engine.arrow.columns.hashing import drop_hash, hash_long

EDGES = np.array([0, 1, -1, 42, 2**63 - 1, -(2**63), 1_700_000_000_000_000])


def test_as_the_xxhash_package():
    values = np.concatenate([EDGES, np.random.default_rng(5).integers(-(2**63), 2**63 - 1, 1000)])
    expected = [xxhash.xxh64_intdigest(struct.pack("<q", value), seed=42) for value in values.tolist()]
    assert hash_long(values, np.array([42], np.uint64)).tolist() == expected


def test_as_spark():
    # what Spark 4.3 answered to SELECT xxhash64(1L) and to xxhash64(CAST(seed AS BIGINT), seq)
    assert hash_long(np.array([1]), np.array([42], np.uint64)).view(np.int64).tolist() == [
        -7001672635703045582
    ]
    spark = {(0, 1): 8281773146650252936, (7, -1): 931983307523278007, (-3, 2**63 - 1): -6068043231815107895}
    assert {pair: drop_hash(pair[0], np.array([pair[1]])).view(np.int64)[0] for pair in spark} == spark


def test_the_seed_is_hashed_first():
    first = xxhash.xxh64_intdigest(struct.pack("<q", 7), seed=42)
    assert drop_hash(7, EDGES).tolist() == [
        xxhash.xxh64_intdigest(struct.pack("<q", v), seed=first) for v in EDGES.tolist()
    ]
