"""A run in its own processes: a rating starts each trial this way, so that no trial inherits a warm one.

Idea: the plan travels as one line of JSON. The child and all its processes end at once when the parent is
gone. SIGTERM asks for a clean end. The exit code and the last line of the log tell the parent how it went.
"""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.linear_road.drive.plan_text import plan_from_text, plan_to_text
from penstock.linear_road.errors import InputError, RunStopped
from penstock.linear_road.run.plan import RunPlan
from penstock.model.errors import PenstockError
from penstock.process.child_process import end_group_at_once, run_child, when_parent_is_gone
from penstock.process.stop_signal import StopSignal

DONE, FAILED, REFUSED, STOPPED = 0, 1, 2, 130
"""Exit codes of the child, the same as those of `penstock lr run`."""

COMMAND: tuple[str, ...] = (sys.executable, "-m", __name__)


def run_in_child(plan: RunPlan, log: Path, command: tuple[str, ...] = COMMAND) -> int:
    """Carry out a plan in a child process and return its exit code; its messages go to `log`."""
    return run_child([*command, plan_to_text(plan)], log)


def main(text: str) -> int:
    """The child's side: run the plan, and say in the last line what went wrong."""
    # The whole group: Spark's processes would go on computing for nobody.
    when_parent_is_gone(end_group_at_once)
    try:
        return _run(plan_from_text(RunPlan, text))
    except RunStopped as stopped:
        print(stopped, flush=True)
        return STOPPED
    except InputError as error:
        print(error, flush=True)
        return REFUSED
    except PenstockError as error:
        print(error, flush=True)
        return FAILED


def _run(plan: RunPlan) -> int:
    # Import Spark here, so that a refused plan need not wait for it.
    from penstock.linear_road.run.runner import Watcher, run

    with StopSignal().on_signals() as stop:
        watcher = Watcher(say=lambda sentence: print(sentence, flush=True), spark_started=stop.take_signals)
        record = run(plan, stop=stop, watcher=watcher)
    return DONE if record["finished"] else STOPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
