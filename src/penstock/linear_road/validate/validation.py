"""One validation from files to verdict."""

from __future__ import annotations

import json
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import duckdb

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.inputs import Input, history_beside, open_input
from penstock.linear_road.rows.partial_work import code_of, is_long, key_of, work_directory
from penstock.linear_road.validate.answer_files import answer_files, read_answers
from penstock.linear_road.validate.comparison import EARLY, LATE, compare
from penstock.linear_road.validate.judged import inexact, restrict
from penstock.linear_road.validate.oracle import MEMORY, Oracle, Progress, consult, workspace, write_expected
from penstock.linear_road.validate.report import Verdict, add_answers, new_verdict
from penstock.linear_road.validate.rules.history import history_files
from penstock.linear_road.validate.why import why, working
from penstock.store.durable import write_text

STEPS = 11
"""How many steps `validate` reports to `progress`."""


def validate(  # noqa: PLR0913 - what to do and where; each is an option of `lr validate`
    path: Path,
    *,
    answers: Path | None = None,
    history: Path | None = None,
    response_times: bool = True,
    expected: Path | None = None,
    json_file: Path | None = None,
    ask: tuple[int, int] | None = None,
    memory: str = MEMORY,
    work: Path | None = None,
    progress: Progress = lambda _step, _share: None,
) -> Verdict:
    """Check the answers to an input, write the right ones, or explain one.

    `answers` are checked, `expected` is written, `ask` = (VID, TIME) is explained. The oracle's tables for a
    large input lie in a work directory (in `work`, which also keeps small ones). After a kill the same call
    resumes with them.
    """
    source = open_input(path)
    history = history or history_beside(path)
    _check(answers, expected, json_file)
    # The tables are keyed by input, history and the oracle's own code: another version begins anew.
    with _work(source, history, work) as directory, workspace(memory, directory) as con:
        oracle = consult(con, source, history, progress)
        verdict = new_verdict(path, oracle)
        if expected:
            progress("right answers", 0)
            write_expected(oracle, expected)
        if answers:
            _judge(oracle, verdict, answers, progress, response_times=response_times)
        if ask:
            verdict.why = why(oracle, *ask)
    if json_file:
        write_text(json_file, json.dumps(verdict.as_json(), indent=1) + "\n")
    return verdict


def _work(source: Input, history: Path | None, where: Path | None) -> AbstractContextManager[Path | None]:
    if where is None and not is_long(source):
        return nullcontext()
    code = code_of(Path(__file__).parent)
    key = key_of([*source.files, *history_files(history)], duckdb.__version__, code)
    return work_directory("validate", key, where)


def _check(answers: Path | None, expected: Path | None, json_file: Path | None) -> None:
    """Refuse at once what would otherwise fail after minutes of work."""
    if answers:
        answer_files(answers)
    for file in (expected, json_file):
        if file and not file.parent.is_dir():
            raise InputError(f"{file} cannot be written: there is no directory {file.parent}")
        if file and file.is_dir():
            raise InputError(f"{file} cannot be written: it is a directory")


def _judge(oracle: Oracle, verdict: Verdict, path: Path, progress: Progress, *, response_times: bool) -> None:
    progress("reading answers", 0)
    start = time.perf_counter()
    answers = read_answers(oracle.con, path)
    add_answers(verdict, answers)
    left_out = answers.run.get("left_out", [])
    verdict.left_out = len({xway for each in left_out for xway in each["xways"]})
    restrict(oracle.con, inexact(left_out))
    progress("comparison", 0)
    # A run at maximum speed has no clock, so there is nothing to be late by.
    limits = response_times and answers.speed is not None
    verdict.response_times = "checked" if limits else "not checked"
    verdict.results = compare(oracle.con, emits=response_times, limits=limits)
    for result in verdict.results:
        for fault in result.faults:
            if fault.kind not in (LATE, EARLY):
                fault.working = working(oracle, result.type.number, fault)
    verdict.seconds["answers"] = round(time.perf_counter() - start, 3)
