"""Which database a page is about."""

from __future__ import annotations

from contextlib import suppress

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, router
from django.http import HttpRequest
from django.utils.http import urlencode

from .. import configured_backends
from ..models import Job

PARAMETER = "database"


def queue_databases() -> list[str]:
    """Return the databases that hold a queue; if ``TASKS`` says of none, that of the models."""
    with suppress(ImproperlyConfigured):  # The system checks report it.
        if found := configured_backends.queue_databases():
            return found
    return [router.db_for_write(Job) or DEFAULT_DB_ALIAS]


def chosen(request: HttpRequest) -> str:
    """Return the database that a request names, or else the first one with a queue."""
    known = queue_databases()
    named = request.GET.get(PARAMETER, "")
    return named if named in known else known[0]


def query(request: HttpRequest) -> str:
    """Return what has a link keep to the database of this request."""
    using = chosen(request)
    return "" if using == queue_databases()[0] else "?" + urlencode({PARAMETER: using})
