"""The commands that open a console."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from penstock.cli.console.options import ConsoleOptions
from penstock.cli.main import penstock_app
from web.recorded import record

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(penstock_app(words), list(words))
    return result.exit_code, result.output


def test_what_is_no_checkpoint_is_refused(tmp_path):
    code, said = run("console", str(tmp_path / "nowhere"))
    assert code == 2
    assert "is no checkpoint" in said
    assert "hint:" in said


def test_a_port_that_is_taken_is_refused(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, said = run("console", str(record(tmp_path)), "--port", str(taken.getsockname()[1]))
    assert code == 2
    assert "choose another with --port" in said


def test_a_run_of_linear_road_refuses_a_taken_port_before_spark_starts(tmp_path):
    (tmp_path / "rows.dat").write_text("")
    words = ("lr", "run", "--input", str(tmp_path / "rows.dat"), "--out", str(tmp_path / "out"), "--console")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, said = run(*words, "--port", str(taken.getsockname()[1]))
    assert code != 0
    assert "choose another with --port" in said
    assert not (tmp_path / "out").exists()


def test_an_open_address_gets_a_token_that_is_printed(capsys):
    given = ConsoleOptions(host="0.0.0.0").arguments()
    (token,) = given["tokens"]
    assert token.removeprefix("console=") in capsys.readouterr().err
    assert ConsoleOptions().arguments()["tokens"] == []


def test_the_command_serves_a_checkpoint_until_it_is_told_to_stop(tmp_path: Path):
    words = ["-m", "penstock.cli.main", "console", str(record(tmp_path)), "--port", "0"]
    with subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert "looking only" in process.stderr.readline()
            found = re.search(r"http://\S+", process.stderr.readline())
            assert found is not None
            with urlopen(f"{found[0]}/api/network") as answer:
                assert answer.status == 200
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()
