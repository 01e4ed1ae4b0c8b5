"""The text that Prometheus reads."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

from ..errors import PrometheusMissing

MISSING = "Metrics need the package prometheus_client: pip install 'steady-queue-core[prometheus]'"


def metrics_text(accept: str | None = None, names: Collection[str] = ()) -> tuple[bytes, str]:
    """Return the metrics of all databases of the queue, and their content type.

    ``accept``: the Accept header of the request, which may ask for OpenMetrics. ``steady_queue_up``
    tells of a database that does not answer. ``names``: only these families, without ``_total``.
    Raises ``PrometheusMissing``.
    """
    try:
        client: Any = import_module("prometheus_client.exposition")
    except ImportError as error:
        raise PrometheusMissing(MISSING) from error
    from .families import Families

    encode, content_type = client.choose_encoder(accept or "")
    return encode(Families(names)), content_type
