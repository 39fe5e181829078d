#!/usr/bin/env bash
# NAME=engine/overhead: that benchmark in full. Otherwise all benchmarks with --quick, one after the other, to
# see that they work; nothing is recorded. One that fails does not stop the rest, but the exit code tells.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}

# A benchmark records a result; the peers and the shared modules do not.
names=$(grep -l "recording(" benchmarks/*/*.py benchmarks/*/*/__main__.py | grep -v /common/ \
  | sed 's,^benchmarks/,,; s,\.py$,,; s,/__main__$,,')

if [ -n "${NAME:-}" ]; then
  name=${NAME#benchmarks/} name=${name%.py} name=${name//./\/}
  if ! grep -qx "$name" <<<"$names"; then
    echo "there is no benchmark $NAME; there are: $(xargs <<<"$names")" >&2
    exit 2
  fi
  exec "$python" -m "benchmarks.${name//\//.}" "$@"
fi

failed=()
for name in $names; do
  echo "== $name"
  "$python" -m "benchmarks.${name//\//.}" --quick --no-result "$@" || failed+=("$name")
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
