"""The vectorised logics, cranked box by box in place of the reference ones, give the same rows (without
Spark).
"""

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings

from penstock.engine.arrow.logic import logic_for
from penstock.engine.local import LocalEngine
from penstock.engine.local.rows import Answer
from penstock.model.boxes import ConnectionPoint, Drop, Output, View
from penstock.model.types import arrow_schema
from penstock.testing import assert_same_result
from penstock.testing.strategies import cases


class ArrowBox:
    """An Arrow logic behind the face of a reference logic."""

    def __init__(self, node, inputs, output):
        self.logic = logic_for(node, inputs, output)
        self.schemas = [arrow_schema(stream.schema) for stream in inputs]

    def process(self, inputs, horizons, *, final):
        tables = [
            pa.Table.from_pylist(rows, schema=schema)
            for rows, schema in zip(inputs, self.schemas, strict=True)
        ]
        answer = self.logic.process(tables, horizons, final=final)
        dead = [
            ({"raw": row["raw"], "_seq": row["offset"]}, row["reason"]) for row in answer.dead.to_pylist()
        ]
        return Answer(answer.out.to_pylist(), dead)


class ArrowEngine(LocalEngine):
    """The reference engine with Arrow logics in all boxes that compute."""

    def _logic(self, node):
        if isinstance(
            node, Drop | Output | ConnectionPoint | View
        ):  # run by the engine itself; rates are set from outside
            return super()._logic(node)
        return ArrowBox(
            node, [self.network.types[tail] for tail in node.inputs], self.network.types[node.name]
        )


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)
@given(cases(number_of_cuttings=1))
def test_same_rows_as_the_reference(case):
    trains = case.trains[0]
    assert_same_result(ArrowEngine(case.network).run(trains), LocalEngine(case.network).run(trains))
