"""A worker whose JVM has gone ends without a trace on the console."""

from __future__ import annotations

import pytest

from penstock.engine.spark.pyspark.daemon import ends_quietly


@pytest.mark.parametrize("error", [BrokenPipeError, ConnectionResetError])
def test_a_jvm_that_is_gone_is_no_error(error):
    def serve(*_given):
        raise error

    assert ends_quietly(serve)("socket", True) == 1


def test_all_else_is_passed_on():
    def serve(code):
        if code < 0:
            raise ValueError(code)
        return code

    assert ends_quietly(serve)(3) == 3
    with pytest.raises(ValueError, match="-1"):
        ends_quietly(serve)(-1)
