"""Listing queues, upserts, and the clock and collation of what is stored."""

# Specifications have no body, whatever they return.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Model

from .markers import optional, required


@required
def steady_queue_list_queues(connection: BaseDatabaseWrapper, prefix: str) -> list[str]:
    """Return the sorted names of the queues that have ready jobs and start with ``prefix``.

    Names compare by code point. The cost should depend on the number of queues, not of jobs.
    """


@optional
def steady_queue_count_ready(connection: BaseDatabaseWrapper, queue_name: str, limit: int) -> int:
    """Optional. Count the ready jobs of a queue, but at most ``limit`` of them.

    Its name compares exactly. The cost should depend on what is counted, however many jobs are in
    this queue or in others. It is called before an enqueue, in the caller's transaction if there is
    one, and must not make the enqueue fail. Without it, ``portable.count_ready`` counts.
    """


@required
def steady_queue_insert_if_absent(
    connection: BaseDatabaseWrapper, row: Model, unique_fields: Sequence[str]
) -> bool:
    """Insert ``row`` unless one with the same ``unique_fields`` exists; return whether it did.

    The surrounding transaction stays usable in both cases. Other errors are raised.
    """


@required
def steady_queue_upsert(
    connection: BaseDatabaseWrapper,
    rows: Sequence[Model],
    unique_fields: Sequence[str],
    update_fields: Sequence[str],
) -> None:
    """Insert ``rows``, or set ``update_fields`` of those whose ``unique_fields`` exist already.

    The rows are locked until the end of the transaction, one after another in the order of
    ``rows``.
    """


@required
def steady_queue_now(connection: BaseDatabaseWrapper) -> Expression:
    """Return an expression for the database's present time, in UTC.

    It must move on within a transaction, and be comparable to what the other hooks store: where
    times are text, it has as many digits.
    """


@optional
def steady_queue_exact_collation(connection: BaseDatabaseWrapper) -> str | None:
    """Return the collation that compares by code point, for names in columns of the migration.

    Optional. Return ``None`` if the default collation does. May run a query.
    """
