#!/usr/bin/env bash
# NAME=x: benchmarks/x.py in full. Otherwise every benchmark that has --quick, one after the other; one that fails does not
# stop the rest, but the exit code tells.
set -euo pipefail
cd "$(dirname "$0")/.."

# Modules that benchmarks share have no main part.
benchmarks=$(grep -l __main__ benchmarks/*.py | xargs grep -l quick)

if [ -n "${NAME:-}" ]; then
  if [ ! -f "benchmarks/$NAME.py" ]; then
    echo "there is no benchmarks/$NAME.py; there are: $(xargs -n1 basename -s .py <<<"$benchmarks" | xargs)" >&2
    exit 2
  fi
  exec .venv/bin/python "benchmarks/$NAME.py" "$@"
fi

failed=()
for file in $benchmarks; do
  echo "== $(basename "$file" .py)"
  .venv/bin/python "$file" --quick "$@" || failed+=("$(basename "$file" .py)")
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
