#!/usr/bin/env bash
# Builds the console's page from web/page into src/penstock/web/static, whose files are committed.
#   scripts/page.sh           lint, test, build
#   scripts/page.sh --check   the same into a folder of its own; fails if the committed files differ
# Only who changes the page needs it, and Node 20.19 or newer. Same sources, same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v npm >/dev/null || {
  echo "scripts/page.sh needs Node 20.19 or newer with npm; on Debian: apt-get install nodejs npm" >&2
  exit 1
}
static=src/penstock/web/static
cd web/page
# Not `npm ci`: it wants the native parts of the bundler for every other platform in the lock, too.
npm install --no-save --no-audit --no-fund --loglevel error
npm run --silent lint
npm run --silent test
if [ "${1:-}" != --check ]; then
  npm run --silent build
  exit
fi
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
npm run --silent build -- --outDir "$built"
diff -r "$built" "../../$static" >/dev/null || {
  echo "$static is not what web/page builds: run scripts/page.sh and commit it" >&2
  exit 1
}
