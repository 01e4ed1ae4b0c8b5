"""The first members of batches: a bounded number of rows is read, however many there are."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from django.db import connections
from django.db.models import QuerySet

from ..dialects import MemberState
from ..models import BatchMember

#: Most batches of one statement: each has a part for every state, and SQLite takes 500 parts.
MOST_BATCHES = 40


def members_of(
    using: str,
    batch_ids: Collection[int],
    most: int,
    *,
    state: MemberState | None = None,
    beyond: int | None = None,
    backwards: bool = False,
) -> dict[int, list[int]]:
    """Return the ids of the first ``most`` members of each batch, in one statement.

    ``state``: only these; ``beyond``: only members after this one or, ``backwards``, before it,
    the nearest ones first.
    """
    connection = connections[using]
    order = ("-state", "-pk") if backwards else ("state", "pk")
    parts: list[str] = []
    parameters: list[Any] = []
    for batch_id in list(batch_ids)[:MOST_BATCHES]:
        rows = BatchMember.objects.using(using).filter(batch_id=batch_id)
        if beyond is not None:
            rows = rows.filter(**{f"pk__{'lt' if backwards else 'gt'}": beyond})
        for part in _by_state(rows, state):
            selected = part.order_by(*order).values("batch_id", "pk")[:most]
            sql, given = selected.query.get_compiler(using).as_sql()
            parts.append(f"SELECT * FROM ({sql}) part{len(parts)}")
            parameters += given
    found: dict[int, list[int]] = {batch_id: [] for batch_id in batch_ids}
    if parts:
        with connection.cursor() as cursor:
            cursor.execute(" UNION ALL ".join(parts), parameters)
            for batch_id, pk in cursor.fetchall():
                found[batch_id].append(pk)
    return {pk: sorted(ids, reverse=backwards)[:most] for pk, ids in found.items()}


def _by_state(rows: QuerySet[Any], state: MemberState | None) -> Iterator[QuerySet[Any]]:
    """Yield the members in parts, each of which an index has in order: it begins with the state."""
    if state is not None:
        yield rows.filter(state=state)
        return
    for each in MemberState:
        yield rows.filter(state=each)
    yield rows.filter(state__lt=min(MemberState))  # None, unless somebody has written them.
    yield rows.filter(state__gt=max(MemberState))
