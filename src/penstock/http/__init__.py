"""What every HTTP service of Penstock shares: the server, its guard, and the form of its errors.

A service brings its routes. This room knows none of them, so standing queries and other services can stand
side by side on it. It needs the extra `web`: `require_web()` says so in a sentence where the packages are
missing.
"""

from penstock.http.extra import require_web

__all__ = ["require_web"]
