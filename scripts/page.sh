#!/usr/bin/env bash
# Builds the console's page from web/page into src/penstock/web/static, whose files are committed.
#   scripts/page.sh           lint, test, build
#   scripts/page.sh --check   the same into a folder of its own; fails if the committed files differ
#   scripts/page.sh --tools   only install what package-lock.json names
# Only who changes the page needs it, and Node 20.19 or newer. Same sources, same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v npm >/dev/null || {
  echo "scripts/page.sh needs Node 20.19 or newer with npm; on Debian: apt-get install nodejs npm" >&2
  exit 1
}
static=src/penstock/web/static
cd web/page
# `npm ci` begins with an empty folder, so it runs only when the lock has changed, and never twice at a time.
exec 9<package-lock.json
if command -v flock >/dev/null; then flock 9; fi
if ! cmp -s package-lock.json node_modules/.installed-lock; then
  npm ci --no-audit --no-fund --loglevel error
  cp package-lock.json node_modules/.installed-lock
fi
exec 9<&-
if [ "${1:-}" = --tools ]; then
  exit
fi
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
