"""Each rule by before and after, as text: `rules/*.yaml`. Both sides are run, and give the same rows.

A file has three parts: what it shows and the name of the rule, the network before, and the network after, or
`same` where the rule must not touch it. `in use` names boxes whose state holds tuples already.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from penstock.engine.local import LocalEngine
from penstock.model.text.yaml_form import from_yaml, to_yaml
from penstock.rewrite.cost_model import CostModel
from penstock.rewrite.optimize import RULES
from penstock.testing import assert_same_result

from .test_networks import rows_for

FILES = sorted((Path(__file__).parent / "rules").glob("*.yaml"))
BY_NAME = {rule.name: rule for rule in RULES}


def parts_of(path: Path) -> tuple[dict[str, object], str, str]:
    head, before, after = path.read_text().split("\n---\n")
    return yaml.safe_load(head), before + "\n", after


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_before_and_after(path):
    head, before, after = parts_of(path)
    network = from_yaml(before)
    costs = CostModel(in_use=frozenset(head.get("in use", ())))
    result = BY_NAME[head["rule"]](network, costs)
    expected = network if after.strip() == "same" else from_yaml(after)
    assert to_yaml(result) == to_yaml(expected)
    rows = {name: rows_for(source.schema) for name, source in network.sources.items()}
    assert_same_result(LocalEngine(result).run([rows]), LocalEngine(network).run([rows]))


def test_every_rule_has_a_file():
    assert {parts_of(path)[0]["rule"] for path in FILES} == BY_NAME.keys()
