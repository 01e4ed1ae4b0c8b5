"""What people do in the admin: carried out in batches, told to them, and written down."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import DatabaseError
from django.db.models import Model
from django.http import HttpRequest

from ..logging import about, get_logger
from . import texts

logger = get_logger("steady_queue.admin")

#: Rows of one transaction.
BATCH = 500
#: Seconds after which a request begins no further batch: servers end those that take much longer.
PATIENCE = 20.0


class Done(NamedTuple):
    """What became of an act on many."""

    #: Rows that were changed, and rows that were asked for.
    changed: int
    asked: int
    #: Why not all were looked at.
    stopped: str = ""


def in_batches(
    chunks: Iterable[Sequence[Any]],
    do: Callable[[Sequence[Any]], int],
    is_contention: Callable[[Exception], bool],
) -> Done:
    """Have ``do`` act on some keys at a time, each time in a transaction of its own; stop when
    that has taken long, or when others hold what it needs."""
    end = time.monotonic() + PATIENCE
    count = asked = 0
    for batch in _batches(chunks):
        try:
            count += do(batch)
        except DatabaseError as error:
            if not is_contention(error):
                raise
            return Done(count, asked, "the database was busy")
        asked += len(batch)
        if time.monotonic() > end:
            return Done(count, asked, f"that took more than {PATIENCE:g} seconds")
    return Done(count, asked)


def _batches(chunks: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    # Empty chunks, too: it takes time to find that nothing matches.
    for chunk in chunks:
        for start in range(0, max(1, len(chunk)), BATCH):
            yield chunk[start : start + BATCH]


def tell(request: HttpRequest, name: str, message: str) -> None:
    """Write one act of the user into the log."""
    user = request.user.get_username()
    logger.info(
        "%s: %s (%s)", user, message, texts.line(name), extra=about("admin.acted", user=user)
    )


def record(
    request: HttpRequest,
    model: type[Model],
    message: str,
    names: Mapping[Any, str],
    flag: int = CHANGE,
) -> None:
    """Write an act into the admin's history of each row; ``names`` are by primary keys."""
    content_type_id = ContentType.objects.get_for_model(model).pk
    entries = [
        LogEntry(
            user_id=request.user.pk,
            content_type_id=content_type_id,
            object_id=str(key),
            object_repr=texts.line(name)[:200],
            action_flag=flag,
            change_message=message,
        )
        for key, name in names.items()
    ]
    LogEntry.objects.bulk_create(entries, batch_size=BATCH)
