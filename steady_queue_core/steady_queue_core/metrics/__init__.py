"""Metrics for Prometheus: gauges read at the scrape, counters from the statistics."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

from ..errors import PrometheusMissing

__all__ = ["metrics_text"]

MISSING = "Metrics need the package prometheus_client: pip install 'steady-queue-core[prometheus]'"


def metrics_text(accept: str | None = None, names: Collection[str] = ()) -> tuple[bytes, str]:
    """Return the metrics of all databases of the queue, and their content type.

    ``accept``: the Accept header of the request, which may ask for OpenMetrics. ``steady_queue_up``
    tells of a database that does not answer. ``names``: only these families, without ``_total``.
    Raises ``PrometheusMissing``.
    """
    client = _client()
    from .families import Families

    encode, content_type = client.choose_encoder(accept or "")
    return encode(Families(names)), content_type


def known_names() -> frozenset[str]:
    """Return the names of all families, without ``_total``. Raises ``PrometheusMissing``."""
    _client()
    from .families import family_names

    return family_names()


def _client() -> Any:
    try:
        return import_module("prometheus_client.exposition")
    except ImportError as error:
        raise PrometheusMissing(MISSING) from error
