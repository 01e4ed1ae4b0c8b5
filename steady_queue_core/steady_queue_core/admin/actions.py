"""Actions of users in the admin: run in batches, reported, and recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import DatabaseError, router
from django.db.models import Model
from django.http import HttpRequest

from ..dialects.database import Database
from ..logging import about, get_logger
from . import texts

logger = get_logger("steady_queue.admin")

Done = TypeVar("Done")
#: Rows per transaction.
BATCH = 500
#: Seconds after which a request starts no further batch: servers abort much longer requests.
TIME_LIMIT = 20.0


class BatchResult(NamedTuple):
    """The outcome of an action on many rows."""

    #: Rows that were changed, and rows that were requested.
    changed: int
    requested: int
    #: Why the action stopped early, if it did.
    stopped: str = ""

    @property
    def hint(self) -> str:
        """A message to the user of an action that stopped early."""
        return f"There may be more: {self.stopped}. Repeat the action for the rest."


def run_in_batches(
    database: Database, chunks: Iterable[Sequence[Any]], do: Callable[[Sequence[Any]], int]
) -> BatchResult:
    """Call ``do`` with batches of keys, each in its own transaction. Stop at the time limit, or
    when others hold locks that are needed."""
    end = time.monotonic() + TIME_LIMIT
    changed = requested = 0
    has_begun = False
    for batch in _batches(chunks):
        if has_begun and time.monotonic() > end:
            reason = f"the action took more than {TIME_LIMIT:g} seconds"
            return BatchResult(changed, requested, reason)
        has_begun = True
        try:
            changed += do(batch)
        except DatabaseError as error:
            if not database.is_contention(error):
                raise
            return BatchResult(changed, requested, "the database was busy")
        requested += len(batch)
    return BatchResult(changed, requested)


def _batches(chunks: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    # Yields empty chunks as well: finding that nothing matches takes time, too.
    for chunk in chunks:
        for start in range(0, max(1, len(chunk)), BATCH):
            yield chunk[start : start + BATCH]


class Action(Protocol):
    """What is reported of an action on many rows."""

    @property
    def left_alone(self) -> str: ...

    def summary(self, changed: int) -> str: ...


def act_and_record(using: str, act: Callable[[], Done], record: Callable[[Done], None]) -> Done:
    """Do in a database what must not be done twice by mistake, and record it in the admin's log:
    both or nothing. If the log is in another database, what fails there is only logged, lest a user
    do again what is done."""
    if router.db_for_write(LogEntry) == using:
        with Database.of(using).transaction():
            done = act()
            record(done)
            return done
    done = act()
    try:
        record(done)
    except DatabaseError:
        logger.exception("The admin's log lacks an action", extra=about("admin.not_recorded"))
    return done


def log_action(request: HttpRequest, name: str, message: str) -> None:
    """Log an action of the user."""
    log_act(request.user.get_username(), name, message)


def log_act(user: str, name: str, message: str) -> None:
    """Log an action of the user with this name."""
    logger.info(
        "%s: %s (%s)", user, message, texts.line(name), extra=about("admin.acted", user=user)
    )


def add_history(
    request: HttpRequest,
    model: type[Model],
    message: str,
    names: Mapping[Any, str],
    flag: int = CHANGE,
) -> None:
    """Add an action to the admin's history of each row; ``names`` are by primary key."""
    add_history_of(request.user.pk, model, message, names, flag)


def add_history_of(
    user_id: Any, model: type[Model], message: str, names: Mapping[Any, str], flag: int = CHANGE
) -> None:
    """Add an action of the user with this id to the history of each row."""
    content_type_id = ContentType.objects.get_for_model(model).pk
    entries = [
        LogEntry(
            user_id=user_id,
            content_type_id=content_type_id,
            object_id=str(key),
            object_repr=texts.line(name)[:200],
            action_flag=flag,
            change_message=message,
        )
        for key, name in names.items()
    ]
    LogEntry.objects.bulk_create(entries, batch_size=BATCH)
