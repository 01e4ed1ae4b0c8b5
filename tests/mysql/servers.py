"""The servers to test against, named by the environment, as aliases in ``DATABASES``.

``STEADY_QUEUE_TEST_MYSQL`` and ``STEADY_QUEUE_TEST_MARIADB`` hold addresses such as
``mysql://user:password@host:port/name``; ``STEADY_QUEUE_TEST_MYSQL_DRIVER`` is ``connector``,
``pure`` (the same without its C extension) or ``mysqlclient``.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.db import connections

VARIABLES = {
    "mysql": "STEADY_QUEUE_TEST_MYSQL",
    "mariadb": "STEADY_QUEUE_TEST_MARIADB",
}
DRIVERS: dict[str, dict[str, Any]] = {
    "connector": {"ENGINE": "mysql.connector.django"},
    "pure": {"ENGINE": "mysql.connector.django", "OPTIONS": {"use_pure": True}},
    "mysqlclient": {"ENGINE": "django.db.backends.mysql"},
}


def add_aliases() -> list[str]:
    """Add the servers that the environment names; return their aliases."""
    found = []
    for alias, variable in VARIABLES.items():
        if alias not in settings.DATABASES and os.environ.get(variable):
            settings.DATABASES[alias] = settings_of(os.environ[variable])
        if alias in settings.DATABASES:
            found.append(alias)
    # Django has read the settings already, and completes what has come since.
    connections.configure_settings(connections.settings)
    return found


def settings_of(address: str) -> dict[str, Any]:
    """Return the ``DATABASES`` entry of an address, for the driver under test."""
    parts = urlsplit(address)
    name = parts.path.lstrip("/")
    return {
        **DRIVERS[os.environ.get("STEADY_QUEUE_TEST_MYSQL_DRIVER", "connector")],
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "127.0.0.1",
        "PORT": str(parts.port or 3306),
        "TEST": {"NAME": f"test_{name}_{os.getpid()}", "DEPENDENCIES": []},
    }
