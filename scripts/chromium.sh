#!/usr/bin/env bash
# Prints the path of a Chromium for the browser tests; as root on Debian it installs one if there is none.
set -euo pipefail

for name in "${PENSTOCK_CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
  if [ -n "$name" ] && command -v "$name"; then
    exit
  fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >&2
  command -v chromium && exit
fi
echo "the browser tests need Chromium: install it (Debian: apt-get install chromium)," \
  "or set PENSTOCK_CHROMIUM" >&2
exit 1
