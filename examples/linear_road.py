"""Linear Road end to end from Python: generate a city and its history, run the network on Spark, validate the answers.

`penstock demo` does the same with a live view and a report. This is the public interface, `penstock.linear_road`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from penstock.linear_road.demo import Demo, run_demo

if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.gettempdir()) / "penstock-demo"
    sys.exit(0 if run_demo(Demo(target)) else 1)
