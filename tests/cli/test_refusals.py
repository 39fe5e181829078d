"""One way of refusing: text on standard error, an exit code, and a traceback only with --verbose."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from penstock.cli.main import penstock_app
from penstock.cli.refusals import VERBOSE, refusals, refuse


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setenv(VERBOSE, "0")


def test_a_refusal_is_text_without_a_traceback():
    shown = CliRunner().invoke(penstock_app(["check"]), ["check", "no.py"])
    assert shown.exit_code == 2
    assert shown.stderr == "there is no file no.py\n  expected: file.py:name or a YAML file\n"


def test_verbose_adds_the_traceback_to_the_same_refusal():
    words = ["--verbose", "check", "no.py"]
    shown = CliRunner().invoke(penstock_app(words), words)
    assert shown.exit_code == 2
    assert shown.stderr.startswith("Traceback")
    assert shown.stderr.endswith("there is no file no.py\n  expected: file.py:name or a YAML file\n")


def test_options_before_the_command_do_not_import_the_other_commands():
    names = [command.name for command in penstock_app(["--verbose", "check", "no.py"]).registered_commands]
    assert names == ["check"]


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path, capsys):

    with pytest.raises(typer.Exit), refusals():
        (tmp_path / "none.csv").read_text()
    assert capsys.readouterr().err == f"{tmp_path / 'none.csv'}: No such file or directory\n"


def test_an_error_of_ours_keeps_its_traceback():
    with pytest.raises(BrokenPipeError), refusals():
        raise BrokenPipeError


def test_a_command_may_refuse_with_another_exit_code(capsys):

    with pytest.raises(typer.Exit) as left:
        refuse("the run failed", 1)
    assert left.value.exit_code == 1
    assert capsys.readouterr().err == "the run failed\n"
