"""Which database a page is about."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, router
from django.http import HttpRequest
from django.utils.http import urlencode

from ..backend import own_backends
from ..models import Job

PARAMETER = "database"


def queue_databases() -> list[str]:
    """Return the aliases of the databases that hold a queue, in the order of ``TASKS``."""
    try:
        found = [backend.database for backend in own_backends().values()]
    except ImproperlyConfigured:
        found = []  # The system checks report it.
    return list(dict.fromkeys(found)) or [router.db_for_write(Job) or DEFAULT_DB_ALIAS]


def chosen(request: HttpRequest) -> str:
    """Return the database that a request names, or else the first one with a queue."""
    known = queue_databases()
    named = request.GET.get(PARAMETER, "")
    return named if named in known else known[0]


def query(request: HttpRequest) -> str:
    """Return what has a link keep to the database of this request."""
    using = chosen(request)
    return "" if using == queue_databases()[0] else "?" + urlencode({PARAMETER: using})
