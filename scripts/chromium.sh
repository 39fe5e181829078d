#!/usr/bin/env bash
# Prints the path of a Chromium for the browser tests; as root on Debian it installs one if there is none.
set -euo pipefail

find_it() {
  local name
  for name in "${PENSTOCK_CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
    if [ -n "$name" ] && command -v "$name"; then
      return
    fi
  done
  return 1
}

install_it() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 chromium fonts-dejavu-core
}

find_it && exit
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  # Two test processes come here at once, and any other program may use apt: it serves one at a time.
  exec 9>/var/lock/penstock-chromium
  flock -w 600 9 || true # whoever hangs there must not keep us for ever: apt has a lock of its own
  find_it && exit
  for _ in 1 2 3 4 5 6; do
    install_it >&2 && break
    sleep 10
  done
  find_it && exit
fi
echo "the browser tests need Chromium: install it (Debian: apt-get install chromium)," \
  "or set PENSTOCK_CHROMIUM" >&2
exit 1
