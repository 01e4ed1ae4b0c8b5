"""An alias for a database that nothing has been done to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..aliases import added_alias
from ..servers import client
from ..servers.kinds import KINDS


@contextmanager
def fresh_alias(kind: str, folder: Path) -> Iterator[str]:
    """Add an alias for a new database: on the server ``kind``, or for ``sqlite`` in ``folder``."""
    # Which dialect an alias has is asked only once.
    alias = f"fresh_{kind}"
    if kind == "sqlite":
        file = {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "fresh.sqlite3"}
        with added_alias(alias, file):
            yield alias
        return
    server = KINDS[kind].given()
    assert server is not None, f"the test needs the mark server({kind!r})"
    with client.fresh_database(server) as address, added_alias(alias, address.settings()):
        yield alias
