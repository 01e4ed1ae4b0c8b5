"""Records what a connection sends to its database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

from django.db.backends.base.base import BaseDatabaseWrapper


class Sent(NamedTuple):
    """What was sent at once: one statement or several, with the values for its placeholders."""

    sql: str
    values: Any = None


class RecordingCursor:
    """Records what it executes. It lies below Django's wrappers of cursors, and so sees what
    ``execute_wrapper`` does not."""

    def __init__(self, cursor: Any, sent: list[Sent]) -> None:
        self._cursor, self._sent = cursor, sent

    def execute(self, sql: str, values: Any = None, *rest: Any) -> Any:
        self._sent.append(Sent(sql, _copy(values)))
        return self._cursor.execute(sql, *(() if values is None else (values, *rest)))

    def executemany(self, sql: str, rows: Any) -> Any:
        rows = list(rows)
        self._sent += [Sent(sql, _copy(values)) for values in rows]
        return self._cursor.executemany(sql, rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor)

    def __enter__(self) -> RecordingCursor:
        self._cursor.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._cursor.__exit__(*error)


@contextmanager
def recorded(connection: BaseDatabaseWrapper) -> Iterator[list[Sent]]:
    """Give what ``connection`` sends, including the ends of its transactions.

    The drivers of servers begin and end transactions by themselves; Django asks SQLite for it in
    SQL, and so do the dialects.
    """
    wrapper: Any = connection
    wrapper.ensure_connection()
    sent: list[Sent] = []
    create, set_autocommit = wrapper.create_cursor, wrapper._set_autocommit

    def create_recording(name: Any = None) -> RecordingCursor:
        return RecordingCursor(create(name), sent)

    def set_recorded(autocommit: bool) -> None:
        if not autocommit:
            sent.append(Sent("BEGIN"))
        set_autocommit(autocommit)

    with ExitStack() as patches:
        # A dialect may pass by Django's cursor, unless somebody watches.
        patches.enter_context(wrapper.execute_wrapper(_watch))
        patches.enter_context(mock.patch.object(wrapper, "create_cursor", create_recording))
        patches.enter_context(mock.patch.object(wrapper, "_set_autocommit", set_recorded))
        for end in ("commit", "rollback"):
            patches.enter_context(_recorded_end(wrapper, end, sent))
        yield sent


def _watch(execute: Any, sql: Any, values: Any, many: bool, context: Any) -> Any:
    return execute(sql, values, many, context)


def _recorded_end(wrapper: Any, end: str, sent: list[Sent]) -> Any:
    original = getattr(wrapper, f"_{end}")

    def record() -> None:
        sent.append(Sent(end.upper()))
        original()

    return mock.patch.object(wrapper, f"_{end}", record)


def _copy(values: Any) -> Any:
    if values is None:
        return None
    return dict(values) if isinstance(values, Mapping) else tuple(values)
