#!/usr/bin/env bash
# NAME=x: benchmarks/x.py in full. Otherwise every benchmark that has --quick, one after the other; one that fails does not
# stop the rest, but the exit code tells.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -n "${NAME:-}" ]; then
  if [ ! -f "benchmarks/$NAME.py" ]; then
    echo "there is no benchmarks/$NAME.py; there are: $(grep -l -e '--quick' benchmarks/*.py | xargs -n1 basename -s .py | xargs)" >&2
    exit 2
  fi
  exec .venv/bin/python "benchmarks/$NAME.py" "$@"
fi

failed=()
for file in $(grep -l -e '--quick' benchmarks/*.py); do
  echo "== $(basename "$file" .py)"
  .venv/bin/python "$file" --quick "$@" || failed+=("$(basename "$file" .py)")
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
