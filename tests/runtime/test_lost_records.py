"""Somebody deletes a part of a checkpoint: the next start refuses it with a sentence, or redoes the train."""

from __future__ import annotations

import shutil

import pytest

from engine.spark.trains.test_express import deliver, network
from penstock.engine.spark.tasks import state
from penstock.engine.spark.tasks.state_parts import StateError
from penstock.store.errors import MissingFileError
from penstock.testing.dry_run import DryRun

SECONDS = 6


@pytest.fixture
def folder(tmp_path):
    for at in range(1, SECONDS):
        deliver(tmp_path / "in", at, [f"1,{at % 3},30"], [f"2,{at % 2},40"])
    go_on(tmp_path)
    return tmp_path


def go_on(folder):
    state._RESIDENT.clear()
    dry = DryRun(network(folder), folder / "checkpoint", length=1)
    dry.query.close = False
    dry.run_all()


def query_dir(folder):
    return folder / "checkpoint" / "queries" / "roads_out"


def newest(folder, kind):
    return max((query_dir(folder) / kind).glob("*.json"))


def counts(folder):
    files = (folder / "out" / "roads").glob("*.csv")
    return sorted(line for file in files for line in file.read_text().splitlines())


def one_more(folder):
    deliver(folder / "in", SECONDS, ["1,1,30"], ["2,1,40"])
    go_on(folder)


ALL = sorted(f"{road},{n}" for road in (1, 2) for n in range(1, SECONDS + 1))


def test_state_is_gone(folder):
    shutil.rmtree(query_dir(folder) / "state")
    with pytest.raises(StateError, match="this file of the state is missing"):
        one_more(folder)


def test_a_file_of_the_state_is_gone(folder):
    max((query_dir(folder) / "state" / "rows" / "0").iterdir()).unlink()
    with pytest.raises(StateError, match="missing"):
        one_more(folder)


def test_the_newest_commit_is_gone(folder):
    newest(folder, "commits").unlink()
    one_more(folder)
    assert counts(folder) == ALL


def test_the_newest_ticket_is_gone(folder):
    newest(folder, "trains").unlink()
    with pytest.raises(MissingFileError, match="has a commit but no ticket"):
        one_more(folder)


def test_the_newest_train_is_gone(folder):
    newest(folder, "trains").unlink()
    newest(folder, "commits").unlink()
    with pytest.raises(MissingFileError, match=r"holds rows of train 4, but the last train .* is 3"):
        one_more(folder)


def test_all_tickets_and_commits_are_gone(folder):
    shutil.rmtree(query_dir(folder) / "trains")
    shutil.rmtree(query_dir(folder) / "commits")
    with pytest.raises(MissingFileError, match="records are lost"):
        one_more(folder)


def test_the_identifier_of_the_output_files_is_gone(folder):
    (query_dir(folder) / "run.json").unlink()
    with pytest.raises(MissingFileError, match=r"run.json is gone"):
        one_more(folder)


def test_nothing_is_gone(folder):
    one_more(folder)
    assert counts(folder) == ALL
