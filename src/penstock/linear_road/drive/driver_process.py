"""The data driver as a process of its own, so that neither it nor the pipeline ever waits for the other.

Idea: the driver stands for the world outside. It gets its plan as one line of JSON and keeps a pipe to the
process that started it. SIGTERM is a clean stop: the clock pauses. If the other end of the pipe vanishes, the
run was killed. The driver then ends at once and leaves the clock running, as the world would. Arasu et al.,
"Linear Road", VLDB 2004, section 3.3.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from penstock.linear_road.drive.drive_report import DriveNote, drop_report, read_note
from penstock.linear_road.drive.driver import DrivePlan, drive
from penstock.linear_road.drive.plan_text import plan_from_text, plan_to_text
from penstock.process.child_process import end_at_once, last_said, when_parent_is_gone
from penstock.store.durable import open_file


@dataclass
class DriverProcess:
    """A running driver; `to` is the directory it fills."""

    process: subprocess.Popen[bytes]
    to: Path
    log: Path

    @classmethod
    def start(cls, plan: DrivePlan, log: Path) -> DriverProcess:
        """Start driving; the driver's messages go to `log`."""
        drop_report(Path(plan.to))
        command = [sys.executable, "-m", __name__, plan_to_text(plan)]
        with open_file(log, "ab") as said:
            # Give it its own session: Ctrl-C in a terminal reaches the run, and the run tells the driver.
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=said, stderr=said, start_new_session=True
            )
        return cls(process, Path(plan.to), log)

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def stop(self, timeout: float = 30.0) -> None:
        """End between two seconds, with the clock paused."""
        if self.running:
            self.process.terminate()
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        # Only now: a pipe that closes tells the driver that this process is gone, and the clock would not
        # pause.
        if self.process.stdin is not None:
            self.process.stdin.close()

    def note(self) -> DriveNote:
        """The driver's progress: `next` second, `rows` so far, `report` when it has ended."""
        return read_note(self.to)

    def failure(self) -> str | None:
        """Why a driver ended before the end of its input; None if it is running or finished."""
        if self.running:
            return None
        report = self.note().get("report")
        if report is None or self.process.returncode != 0:
            return last_said(self.log) or f"exit code {self.process.returncode}"
        if report["lost"] is not None:
            return str(report["lost"])
        return None if report["stopped_at"] is None else f"it was stopped at second {report['stopped_at']}"


def main(text: str) -> None:
    """Drive a plan given as JSON."""
    when_parent_is_gone(end_at_once)
    drive(plan_from_text(DrivePlan, text), say=lambda sentence: print(sentence, flush=True))


if __name__ == "__main__":
    main(sys.argv[1])
