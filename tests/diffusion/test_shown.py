"""What a join says about itself: `explain`, YAML, layout, catalog; and what a runtime may ask of it."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import penstock as ps
from diffusion import job
from diffusion.worlds import network
from penstock.cli.main import penstock_app
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.spark.jobs.forms import forms_text
from penstock.engine.spark.layout.plan import lay_out
from penstock.model.errors import PenstockError
from penstock.rewrite.subnetworks import split
from penstock.runtime.box_facts import facts
from penstock.store.catalog.catalog import Catalog
from penstock.testing import columns
from penstock.testing.suite import chosen_engines


def call(*words):
    words = [str(word) for word in words]
    return CliRunner().invoke(penstock_app(words), words)


def test_explain_says_how_it_is_spread():
    text = network(
        (5, 5), on=True, where="", distribution="auto", servers=4, memory=1000, when_full="replace"
    ).explain()
    assert (
        "auto: hash until a server has more than 1.4 times its even share of the load, "
        "then diffused over 4 servers, "
        "master the faster stream, sampled every 10 seconds, 1000 tuples a server, when full replace" in text
    )
    text = network(
        (5, 5), on=False, where="", distribution="diffused", placement="round_robin", master="lower"
    ).explain()
    assert (
        "diffused over all partitions, master the slower stream, sampled every 10 seconds, round robin"
        in text
    )
    assert "diffused" not in network((5, 5), on=True, where="").explain()
    assert "; hash over 3 servers" in network((5, 5), on=True, where="", servers=3).explain()
    assert "; one server: no key to hash" in network((5, 5), on=False, where="", servers=3).explain()


def test_the_box_as_a_function_builds_what_the_method_builds():
    made = []
    for build in (lambda a, b, **how: a.join(b, **how), ps.Join):
        net = ps.Network("n")
        a, b = (net.source(n, ps.csv(n, "time TIMESTAMP, k INT"), timestamp="time") for n in "ab")
        for how in ("hash", "diffused", "auto"):
            build(a, b, on="k", within="1 minute", distribution=how, servers=2, name=how)
        made.append(ps.to_yaml(net))
    assert made[0] == made[1]
    assert made[0].count("servers: 2") == 3


@pytest.mark.parametrize("servers", ["2", 2.5, True, 0])
@pytest.mark.parametrize("how", ["hash", "diffused"])
def test_servers_is_a_number_of_servers(how, servers):
    with pytest.raises(ps.NetworkError, match="servers"):
        network((5, 5), on=True, where="", distribution=how, servers=servers)


def test_explain_before_the_first_train(tmp_path):
    net = network((5, 5), on=True, where="", distribution="auto")
    assert "no train has run yet" in ps.Runtime(net, checkpoint=tmp_path / "new").explain()


def test_yaml_form_says_only_what_differs(tmp_path):
    net = job.network(tmp_path)
    text = ps.to_yaml(net)
    assert "distribution: auto\n    servers: 2\n    sample: 5 seconds\n" in text
    again = ps.from_yaml(text)
    assert again.nodes["pairs"] == net.nodes["pairs"]
    plain = network((5, 5), on=True, where="").nodes["pairs"]
    assert (plain.distribution, plain.servers, plain.spread) == ("hash", None, False)


def test_a_diffused_join_has_a_stage_of_its_own():
    net = ps.Network("n")
    a, b = (net.source(n, ps.csv(n, "time TIMESTAMP, k INT"), timestamp="time") for n in "ab")
    counts = a.group_by("k").tumble("1 minute", n="count(*)", name="counts")
    pairs = counts.join(b, on="k", within="1 minute", distribution="diffused", servers=3, name="pairs")
    pairs.filter("n > 1", name="often").group_by("k").tumble("1 hour", m="count(*)", name="hours").output(
        "out", to=ps.csv("out")
    )
    stages = {stage.name: stage for stage in lay_out(split(net)[0]).stages}
    assert stages["counts"].nodes == ["counts"]
    assert "often" in stages["pairs"].nodes
    assert "hours" not in stages["pairs"].nodes
    assert (stages["pairs"].spread, stages["pairs"].servers, stages["counts"].spread) == (True, 3, False)


def test_a_feed_does_not_pack_a_diffused_join():
    """Packed tuples go where their keys say: no tuple would be spread."""

    def read(**spread):
        net = ps.Network("n")
        text = ps.feed("in", columns.SCHEMA, decode=columns.decode, keys="road")
        rows = net.source("rows", text, timestamp="second", whole=True)
        rows.join(rows, on="road", within="1 minute", name="pairs", **spread).output("out", to=ps.csv("out"))
        return split(net)[0]

    packed, spread = read(), read(distribution="diffused", servers=2)
    assert (lay_out(packed).rooted, lay_out(spread).rooted) == (True, False)
    assert forms_text(lay_out(spread)) == "trains: DataFrames"
    (stage,) = lay_out(spread).stages
    assert (stage.spread, len(stage.entries)) == (True, 2)
    # State of packed trains has no owners: it is of no use.
    assert facts([spread], 2, fuse=True)["pairs"]["spread by"] == "its roles"
    assert "spread by" not in facts([packed], 2, fuse=True)["pairs"]


@pytest.mark.skipif("spark" not in chosen_engines(), reason="spark is not in PENSTOCK_ENGINES")
def test_what_auto_chose_is_in_the_catalog_and_in_explain(tmp_path, spark):
    job.write_input(tmp_path, 200)
    (tmp_path / "net.yaml").write_text(ps.to_yaml(job.network(tmp_path)))
    with ps.Runtime(
        job.network(tmp_path),
        spark,
        tmp_path / "checkpoint",
        once=True,
        close=True,
        policy=AsSoonAsPossible(50),
        partitions=2,
    ) as run:
        with pytest.raises(PenstockError, match="no diffused join 'pears'\n  hint:     did you mean 'pairs'"):
            run.set_master("pears", "left")
        with pytest.raises(
            PenstockError, match="cannot be spread by 'up'\n  expected: one of: left, right, hash"
        ):
            run.set_master("pairs", "up")
        assert run.wait(240)
        assert "pairs: from train 0 on hash, 2 servers (epoch 0)" in run.explain()
    assert job.found(tmp_path) == job.truth(tmp_path)
    catalog = Catalog(tmp_path / "checkpoint" / "catalog.db")
    events = [event.detail for event in catalog.events("diffusion", "pairs")]
    catalog.close()
    # one key has two thirds of the tuples: the first choice does not last
    assert (events[0]["scheme"], events[0]["epoch"]) == ("hash", 0)
    assert (events[1]["scheme"], events[1]["epoch"]) == ("left", 1)
    assert events[1]["share"] > 0.7
    done = call("explain", tmp_path / "net.yaml", "--checkpoint", tmp_path / "checkpoint")
    assert done.exit_code == 0, done.output
    assert "pairs: from train 0 on hash, 2 servers (epoch 0)" in done.output
    assert (
        "on diffused, master left, 2 servers (epoch 1); measured before: left 8.2 and right 5.1"
        in done.output
    )
    assert "stage (diffused over 2 partitions): pairs" in done.output


def test_explain_of_no_checkpoint(tmp_path):
    (tmp_path / "net.yaml").write_text(ps.to_yaml(job.network(tmp_path)))
    done = call("explain", tmp_path / "net.yaml", "--checkpoint", tmp_path / "nowhere")
    assert done.exit_code == 2
    assert "is no checkpoint: it has no catalog.db" in done.output
