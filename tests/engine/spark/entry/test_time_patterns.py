"""Patterns of times mean what they mean in Spark: the same texts are read, as the same times."""

from __future__ import annotations

import pytest

from penstock.model.formats.time_patterns import time_pattern

CASES = {
    "dd/MM/yyyy HH:mm:ss": ["31/01/2024 10:00:00", "1/1/2024 10:00:00", "31/02/2024 10:00:00",
        "31/01/2024 24:00:00", "31/01/24 10:00:00"],
    "d.M.yyyy H:m:s": ["1.2.2024 3:4:5", "01.02.2024 03:04:05", "1.2.2024"],
    "yyyy-MM-dd'T'HH:mm:ss.SSSXXX": ["2024-01-31T10:00:00.123+02:00", "2024-01-31T10:00:00.1Z",
        "2024-01-31T10:00:00.1234Z"],
    "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]": ["2024-01-31T10:00:00", "2024-01-31T10:00:00.000001-05:30",
        "2024-01-31T10:00:00Z"],
    "yyyyMMddHHmmss": ["20240131100000", "202401311000"],
    "yyyy-MM-dd HH:mm:ssZ": ["2024-01-31 10:00:00+0200", "2024-01-31 10:00:00Z"],
    "yyyy-MM-dd HH:mm:ssX": ["2024-01-31 10:00:00+02", "2024-01-31 10:00:00Z", "2024-01-31 10:00:00+0230"],
    "yyyy-MM-dd HH:mm:ssxx": ["2024-01-31 10:00:00+0000", "2024-01-31 10:00:00Z"],
    "MM/dd/yy hh:mm a": ["01/31/24 10:00 PM", "01/31/24 12:00 am", "01/31/24 13:00 PM", "01/31/99 01:00 AM"],
    "dd MMM yyyy": ["31 Jan 2024", "31 jan 2024", "31 January 2024"],
    "MMMM d, yyyy": ["January 31, 2024", "May 1, 2024"],
    "HH:mm": ["10:30", "1:30"],
    "yyyy": ["2024", "24"],
    "''yyyy": ["'2024", "2024"],
}  # fmt: skip


def test_read_as_spark_reads(spark):
    pairs = [(pattern, text) for pattern, texts in CASES.items() for text in texts]
    spark.conf.set("spark.sql.legacy.timeParserPolicy", "CORRECTED")
    try:
        columns = ", ".join(
            "unix_micros(try_to_timestamp({}, {}))".format(*('"' + w + '"' for w in (text, pattern)))
            for pattern, text in pairs
        )
        wanted = list(spark.sql(f"SELECT {columns}").first())
    finally:
        spark.conf.unset("spark.sql.legacy.timeParserPolicy")
    assert dict(zip(pairs, map(micros, pairs), strict=True)) == dict(zip(pairs, wanted, strict=True))
    assert sum(value is not None for value in wanted) > len(wanted) / 2


def micros(pair):
    pattern, text = pair
    try:
        return round(time_pattern(pattern).read(text).timestamp() * 1_000_000)
    except ValueError:
        return None


@pytest.mark.parametrize("text", ["2024", "24"])
def test_a_bare_y_takes_any_year(text):
    assert time_pattern("y").read(text).year == int(text)
