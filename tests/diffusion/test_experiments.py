"""SE1-SE4 in small: the shapes, the verdicts, the files, the command."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from penstock.cli.main import penstock_app
from penstock.diffusion.claims import adaptation_claims, as_markdown, scaling_claims
from penstock.diffusion.cluster import arrivals, draw_rates, heterogeneous
from penstock.diffusion.experiments import Adaptation, Scaling, Setup, balance, scaling, spread
from penstock.diffusion.simulate import Scheme, random_hosts, simulate


def run(*words: str):
    return CliRunner().invoke(penstock_app(["diffusion", *words]), ["diffusion", *words])


def test_throughput_rises_then_falls():
    found = scaling(Setup(seconds=300, servers=(1, 15, 30, 100), joins=8))
    curve = found.throughput["higher"]
    assert curve[0] < curve[1] < curve[2]
    assert curve[2] > curve[3]
    assert curve[0] < 2 * found.llf_throughput


def test_ssp_is_more_even_than_llf():
    found = balance(Setup(seconds=300))
    assert spread(found.ssp) < 0.2 < spread(found.llf)


def test_verdicts_follow_the_figures():
    def curves(values):
        return dict.fromkeys(("higher", "lower", "literal"), values)

    near = Scaling((1, 15, 100), curves([1.0, 3.0, 2.0]), curves([0.1, 0.3, 0.2]), 1.0, 0.1)
    far = Scaling((1, 40, 100), curves([1.0, 3.0, 2.0]), curves([0.1, 0.3, 0.2]), 1.0, 0.1)
    never = Scaling((1, 15, 100), curves([1.0, 2.0, 3.0]), curves([0.1, 0.2, 0.3]), 1.0, 0.1)
    assert [scaling_claims(s)[0].holds for s in (near, far, never)] == ["yes", "in part", "no"]
    found = Adaptation(
        [50.0, 100.0],
        {"static": [2.0, 2.0], "higher": [3.0, 3.0], "lower": [1.0, 2.5]},
        {"higher": 1, "lower": 2},
    )
    assert [c.holds for c in adaptation_claims(found)] == ["yes", "no"]
    assert as_markdown(adaptation_claims(found)).count("\n") == 4


def test_the_command_writes_pictures_table_and_figures(tmp_path):
    done = run("simulate", "--out", str(tmp_path), "--seconds", "60", "--nodes", "20", "--servers", "1,5,20")
    assert done.exit_code == 0, done.output
    assert {p.name for p in tmp_path.iterdir()} >= {
        "se1.svg",
        "se2.svg",
        "se3.svg",
        "se4.svg",
        "table.md",
        "figures.json",
    }
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["SE1"]["servers"] == [1, 5, 20]
    assert {c["id"] for c in figures["claims"]} == {"SE1", "SE2", "SE3", "SE4"}
    assert (
        (tmp_path / "table.md").read_text().startswith("| id | figure | paper's claim | ours | holds | why |")
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--only", "SE9"), "no experiment 'SE9'"),
        (("--servers", "1,x"), "--servers is '1,x'\n  expected: whole numbers"),
        (("--servers", "200"), "--servers has 200\n  expected: 1 to 100"),
        (("--seconds", "0"), "--seconds is 0"),
        (("--when-full", "explode"), "when_full is 'explode'\n  expected: one of drop, replace"),
    ],
)
def test_bad_options_say_what_is_wrong(tmp_path, words, message):
    done = run("simulate", "--out", str(tmp_path), *words)
    assert done.exit_code == 2
    assert message in done.output


def test_a_run_as_large_as_the_papers():
    """5,000 s with 100 nodes: a second of compiled loops. As Python it would run into the limit of a test."""
    rates = draw_rates(10, 5000.0, 1)
    tuples = arrivals(rates, 5000.0, 1)
    found = simulate(heterogeneous(100, 1), tuples, random_hosts(10, 15, 100, 1), Scheme())
    assert found.received.sum() + found.dropped.sum() >= len(tuples.time)
    assert len(found.operations) == 100
    assert (found.operations > 0).all()
