"""The process that reads clients' queries: the same result, the same refusals, and an end."""

from __future__ import annotations

import contextlib
import os
import resource

import pytest

from penstock.standing.errors import OutOfTimeError, QueryError
from penstock.standing.language.language import parse
from penstock.standing.limits import Limits
from penstock.standing.serving.parser_process import PARSER, ParserProcess
from standing.language.test_hostile_text import START, STREAMS

TEXT = "SELECT vid FROM reports WHERE vid IN (1, 2) AND s LIKE 'a%' BEGIN now - 1 minute"


def test_the_same_query_and_the_same_refusal() -> None:
    assert PARSER.parse(TEXT, STREAMS, Limits()) == parse(TEXT, STREAMS)
    for text in ("SELECT vid FROM report", f"{START} WHERE vid IN ('a')", f"{START} WHERE s = '\ud800'"):
        with pytest.raises(QueryError) as here:
            parse(text, STREAMS)
        with pytest.raises(QueryError) as there:
            PARSER.parse(text, STREAMS, Limits())
        assert str(here.value) == str(there.value)


def test_what_takes_too_long_is_killed_and_others_go_on() -> None:
    parser = ParserProcess()
    parser.parse(TEXT, STREAMS, Limits())
    process = parser._process
    values = ", ".join(map(str, range(9_000)))
    with pytest.raises(OutOfTimeError, match="too long to read"):
        parser.parse(f"{START} WHERE vid NOT IN ({values})", STREAMS, Limits(parse_seconds=0.01))
    assert process is not None
    assert process.poll() is not None
    assert parser.parse(TEXT, STREAMS, Limits()) == parse(TEXT, STREAMS)
    parser._kill()


def test_one_that_dies_is_started_again() -> None:
    parser = ParserProcess()
    parser.parse(TEXT, STREAMS, Limits())
    assert parser._process is not None
    parser._process.kill()
    parser._process.wait()
    assert parser.parse(TEXT, STREAMS, Limits()) == parse(TEXT, STREAMS)
    parser._kill()


def test_it_ends_when_nobody_can_ask_any_more() -> None:
    parser = ParserProcess()
    parser.parse(TEXT, STREAMS, Limits())
    process = parser._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(120) == 0
    parser._kill()


def test_a_service_with_thousands_of_connections_still_reads_queries() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4_096)), hard))
    try:
        with contextlib.ExitStack() as taken:
            for _ in range(1_100):
                taken.callback(os.close, os.dup(0))
            parser = ParserProcess()
            assert parser.parse(TEXT, STREAMS, Limits()) == parse(TEXT, STREAMS)
            parser._kill()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
