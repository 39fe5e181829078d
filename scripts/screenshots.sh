#!/usr/bin/env bash
# Makes the console's pictures in docs/img anew: each is taken by a test, of a network that really runs on
# Spark. Look at them before you commit them. Needs Chromium (scripts/chromium.sh) and Java, as the tests do.
set -euo pipefail
cd "$(dirname "$0")/.."

python=.venv/bin/python
[ -x "$python" ] || python=python
JAVA_HOME="$(scripts/java.sh)" PENSTOCK_SCREENSHOTS="$PWD/docs/img" \
  "$python" -m pytest -q -m slow --timeout 900 tests/web/browser/test_nine_points.py \
  tests/web/browser/test_road_live.py tests/web/browser/test_fault_walk.py "$@"
