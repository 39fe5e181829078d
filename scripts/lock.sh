#!/usr/bin/env bash
# Write the locks: exact versions and hashes for every Python and platform that pyproject.toml allows.
# Names no index: they come from wherever pip is set up to look. Keeps what is pinned unless it must move;
# `scripts/lock.sh --upgrade` takes the newest.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -x .venv/bin/uv ] || .venv/bin/python -m pip install --quiet uv
compile=(.venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes
  --no-emit-index-url --custom-compile-command "make lock" pyproject.toml "$@")
"${compile[@]}" --extra spark --extra web --extra bench --extra docs --extra dev -o requirements.lock
# Java for machines without one stands apart: 100 MB that few need.
"${compile[@]}" --extra java --constraint requirements.lock -o .venv/java.lock
.venv/bin/python - <<'PY'
from itertools import takewhile
from pathlib import Path

blocks = Path(".venv/java.lock").read_text().split("\njdk4py==", 1)[1].splitlines()
block = [blocks[0], *takewhile(lambda line: line.startswith("    "), blocks[1:])]
Path("requirements-java.lock").write_text("# made by 'make lock'\njdk4py==" + "\n".join(block) + "\n")
PY
