#!/usr/bin/env bash
# Make .venv and install exactly what requirements.lock names, then Penstock itself (editable).
set -euo pipefail
cd "$(dirname "$0")/.."

suits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

if [ ! -x .venv/bin/python ]; then
  for python in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
    if command -v "$python" >/dev/null && suits "$python"; then found=$python && break; fi
  done
  [ -n "${found:-}" ] || {
    echo "Penstock needs Python 3.11 or newer: install it, or name it with 'make PYTHON=/path/to/python'." >&2
    exit 1
  }
  echo "making .venv with $("$found" --version)"
  "$found" -m venv .venv || {
    echo "The venv module does not work: on Debian and Ubuntu, 'apt install python3-venv'." >&2
    exit 1
  }
fi

pip=(.venv/bin/python -m pip install --quiet --disable-pip-version-check)
echo "installing the packages of requirements.lock (a few minutes at first)"
"${pip[@]}" --require-hashes -r requirements.lock
# Our build back end comes from the lock. (pyspark is published as source only: pip fetches setuptools to
# unpack it.)
"${pip[@]}" --no-deps --no-build-isolation -e .
