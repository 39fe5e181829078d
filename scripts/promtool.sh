#!/usr/bin/env bash
# Prints the path of Prometheus' promtool, for the test of /metrics; on Debian it takes it out of the package.
set -euo pipefail
cd "$(dirname "$0")/.."

if command -v promtool; then
  exit
fi
tools=$PWD/out/tools
if [ ! -x "$tools/usr/bin/promtool" ] && command -v apt-get >/dev/null; then
  # Not installed: the package would start a server.
  mkdir -p "$tools"
  { cd "$tools" \
    && { apt-get download prometheus || { apt-get update -qq && apt-get download prometheus; }; } \
    && dpkg-deb --extract prometheus_*.deb . && rm -f prometheus_*.deb; } >&2
fi
if [ -x "$tools/usr/bin/promtool" ]; then
  echo "$tools/usr/bin/promtool"
  exit
fi
echo "the test of /metrics needs promtool, of the package prometheus: install it" >&2
exit 1
