"""Makes the servers of the environment known before tests are chosen."""

from __future__ import annotations

from .servers import add_aliases

ALIASES = add_aliases()
if not ALIASES:
    collect_ignore_glob = ["test_*.py"]
