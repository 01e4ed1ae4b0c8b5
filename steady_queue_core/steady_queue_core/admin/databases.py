"""The database that a page shows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, router
from django.http import HttpRequest
from django.utils.http import urlencode

from .. import configured_backends
from ..models import Job

PARAMETER = "database"


def queue_databases() -> list[str]:
    """Return the aliases of the databases that hold a queue, in the order of ``TASKS``."""
    with suppress(ImproperlyConfigured):  # Reported by the system checks.
        if found := configured_backends.queue_databases():
            return found
    return [router.db_for_write(Job) or DEFAULT_DB_ALIAS]


def requested(request: HttpRequest) -> str:
    """Return the database that a request names, or else the first one that holds a queue."""
    known = queue_databases()
    named = request.GET.get(PARAMETER, "")
    return named if named in known else known[0]


def parameters(request: HttpRequest) -> dict[str, str]:
    """Return the parameters that keep a link on this request's database."""
    using = requested(request)
    return {} if using == queue_databases()[0] else {PARAMETER: using}


def query_string(request: HttpRequest) -> str:
    """Return the query string that keeps a link on this request's database."""
    return with_query("", parameters(request))


def with_query(address: str, given: Mapping[str, str]) -> str:
    """Return an address with those of the parameters that have a value."""
    query = urlencode({name: value for name, value in given.items() if value})
    return f"{address}?{query}" if query else address
