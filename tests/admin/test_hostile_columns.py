"""Whatever a database takes for a value of a column, no page of the admin breaks of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.db import DatabaseError, connections, models
from django.db.transaction import atomic

from steady_queue_core import call, chain, group
from steady_queue_core.models import (
    BatchMember,
    BlockedExecution,
    ClaimedExecution,
    Dependency,
    FailedExecution,
    Job,
    JobBatch,
    Pause,
    Process,
    Rate,
    ReadyExecution,
    RecurringTask,
    ScheduledExecution,
    Semaphore,
    Share,
    WaitingExecution,
)
from steady_queue_core.models.process import register

from ..app.tasks import noop
from .places import HOUR, Scene, on_every_database
from .test_lists import recurring_tasks
from .visitor import EVERYTHING, Visitor

#: As SQL writes them; each database takes some of them.
INSTANTS = (
    # The even ones are looked at in the east, the odd ones in the west.
    "'9999-12-31 23:59:59.999999'", "'0001-01-01 00:00:00'",
    "'9999-12-31 23:59:59.999999+00'", "'0001-01-01 00:00:00+00'",
    "'infinity'", "'-infinity'", "'294276-12-31 00:00:00'", "'0000-00-00 00:00:00'",
)  # fmt: skip
NUMBERS = ("-1", "0", "32767", "-2147483648", "9223372036854775807", "'many'", "1e300")
TEXTS = (
    "''", "'_00'", "'../../x?a=b#c%'", "'<b>{{x}}\x01\x1b[31m\u202e'", f"'{'9' * 250}'",
    "'[null]'", "'{\"queues\":{},\"threads\":[]}'",
)  # fmt: skip
DEEP = "[" * 900 + "]" * 900
LONG_TEXTS = (
    f"'{'9' * 6_000}'", f"'[{DEEP}]'", f'\'{{"queues":{DEEP},"threads":{DEEP}}}\'',
    '\'{"args":[{"__sq_datetime__":"9999-12-31T23:59:59+00:00"}, 1e400],"kwargs":{"":{}}}\'',
    '\'{"args":[{"__sq_decimal__":"1E+999999999999"}],"kwargs":{}}\'',
)  # fmt: skip
#: What only SQLite takes, for a column of any type.
ANYTHING = ("x'00ff'", "CAST(x'80' AS TEXT)", "-1.5", "1e308")
ZONES = ("Pacific/Kiritimati", "America/Los_Angeles")


def values_of(field: Any, vendor: str) -> tuple[str, ...]:
    values = TEXTS + LONG_TEXTS if isinstance(field, models.TextField) else TEXTS
    if isinstance(field, models.DateTimeField):
        values = INSTANTS
    elif isinstance(
        field, (models.IntegerField, models.BooleanField, models.DurationField, models.FloatField)
    ):
        values = NUMBERS
    return values if field.primary_key or vendor != "sqlite" else ANYTHING + values


def rows_of(scene: Scene, model: type[models.Model], count: int) -> list[Any]:
    """Have ``count`` rows of a model; return their primary keys."""
    using, rows = scene.using, model._default_manager.using(scene.using)
    present = Process.objects.using(using).values_list("created_at", flat=True)[0]
    make: dict[type[models.Model], Callable[[], Any]] = {
        BatchMember: lambda: group(*[call(noop)] * count).enqueue(),
        Dependency: lambda: chain(*[call(noop)] * (count + 1)).enqueue(),
        JobBatch: lambda: [group(call(noop)).enqueue() for _ in range(count)],
        WaitingExecution: lambda: scene.waiting(count),
        BlockedExecution: lambda: scene.blocked(count),
        ClaimedExecution: lambda: scene.claimed(count),
        FailedExecution: lambda: scene.failed(count),
        Job: lambda: scene.finished(count),
        Pause: lambda: rows.bulk_create(
            Pause(queue_name=f"q{number}", created_at=present) for number in range(count)
        ),
        Process: lambda: [
            register(
                using, kind="worker", name=f"made-{number}", pid=1, hostname="here",
                supervisor_id=None, metadata="{}",
            )
            for number in range(count)
        ],
        Rate: lambda: rows.bulk_create(
            Rate(key=f"k{number}", gate=1, line=1, shift=1, limit=1, period=10**6, burst=1)
            for number in range(count)
        ),
        ReadyExecution: lambda: scene.ready(count),
        RecurringTask: lambda: recurring_tasks(scene, count),
        ScheduledExecution: lambda: scene.ready(count, delay=HOUR),
        Semaphore: lambda: rows.bulk_create(
            Semaphore(key=f"k{number}", value=0, limit=1) for number in range(count)
        ),
        Share: lambda: rows.bulk_create(
            Share(queue_name="mail", key=f"k{number}", weight=2) for number in range(count)
        ),
    }  # fmt: skip
    before = {*rows.values_list("pk", flat=True)}
    make[model]()
    return [key for key in rows.values_list("pk", flat=True) if key not in before]


MODELS: tuple[type[models.Model], ...] = (
    BlockedExecution, ClaimedExecution, FailedExecution, Job, Pause, Process, Rate, ReadyExecution,
    RecurringTask, ScheduledExecution, Semaphore, JobBatch, BatchMember, Dependency,
    WaitingExecution, Share,
)  # fmt: skip
#: Lists that show something of a model, each with its filters.
SHOWN_IN: dict[type[models.Model], list[tuple[str, dict[str, str]]]] = {
    BlockedExecution: [("job", {"state": "blocked"})],
    ClaimedExecution: [("job", {"state": "running"}), ("process", {})],
    FailedExecution: [("job", {"state": "failed"})],
    Job: [("job", {}), ("job", {"state": "finished"})],
    ReadyExecution: [
        ("job", {"state": "ready"}),
        ("job", {"state": "ready", "queue": "default"}),
        ("pause", {}),
    ],
    ScheduledExecution: [("job", {"state": "scheduled"})],
    JobBatch: [("jobbatch", {}), ("jobbatch", {"status": "running"}), ("jobbatch", {"q": "x"})],
    BatchMember: [("jobbatch", {})],
    Dependency: [("job", {"state": "waiting"})],
    WaitingExecution: [("job", {"state": "waiting"})],
}
#: What a row has its identity from; all else is damaged.
UNCHANGED = (models.OneToOneField, models.AutoField)
#: The pages of the others by themselves.
PAGES: dict[type[models.Model], str] = {
    Pause: "pause", Process: "process", Rate: "rate", RecurringTask: "recurringtask",
    Semaphore: "semaphore", Share: "share", JobBatch: "jobbatch", BatchMember: "jobbatch",
}  # fmt: skip
#: The columns with the keys of the pages that show the others, as they were before the damage.
SHOWN_ON = {BatchMember: "batch_id", Dependency: "job_id"}


@pytest.mark.slow
@on_every_database
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_value_of_a_column_breaks_a_page(
    using: str, model: type[models.Model], scene: Scene, settings: Any
) -> None:
    """Each column is damaged in a row of its own, with one value after the other."""
    fields = [f for f in model._meta.local_fields if not isinstance(f, UNCHANGED)]
    columns = [Column(using, model, field) for field in fields]
    keys, vendor = rows_of(scene, model, len(fields)), connections[using].vendor
    visitor = Visitor(*EVERYTHING)
    before = [column.read(key) for column, key in zip(columns, keys, strict=True)]
    rows = model._default_manager.using(using).filter(pk__in=keys)
    pages = dict(rows.values_list("pk", SHOWN_ON[model])) if model in SHOWN_ON else {}
    taken = 0
    for number in range(max(len(values_of(field, vendor)) for field in fields)):
        settings.TIME_ZONE = ZONES[number % 2]
        written = []
        for column, key, old in zip(columns, keys, before, strict=True):
            values = values_of(column.field, vendor)
            if number < len(values) and column.write(values[number], key):
                written.append((column, column.key_now(key), old))
        taken += len(written)
        for name, query in SHOWN_IN.get(model, [(PAGES.get(model, ""), {})]):
            assert visitor.list(name, **query).status == 200, (name, query, number)
        for column, key, _ in written:
            if key == "":
                continue  # It has no address.
            shown = pages.get(key, key)
            for view in ("change", "history")[: 2 - bool(number)]:
                page = visitor.url(PAGES.get(model, "job"), view, shown)
                response = visitor.client.get(page)
                assert response.status_code in (200, 302), (page, column.name, number)
        for column, key, old in written:
            column.restore(old, key)
    assert taken > len(fields)


class Column:
    """A column of a table, written as any client of the database may write it."""

    def __init__(self, using: str, model: type[models.Model], field: Any) -> None:
        self.connection, self.field = connections[using], field
        quote = self.connection.ops.quote_name
        self.table = quote(model._meta.db_table)
        self.name, self.key = quote(field.column), quote(model._meta.pk.column)

    def read(self, key: Any) -> Any:
        sql = f"SELECT {self.name} FROM {self.table} WHERE {self.key} = %s"
        with self.connection.cursor() as cursor:
            cursor.execute(sql, [key])
            return cursor.fetchone()[0]

    def write(self, value: str, key: Any) -> bool:
        """Write a value, as SQL has it; ``False``: the database does not take it."""
        self.value = value.replace("%", "%%")
        try:
            with atomic(self.connection.alias), self.connection.cursor() as cursor:
                if self.connection.vendor == "mysql":
                    cursor.execute("SET SESSION sql_mode = ''")
                sql = f"UPDATE {self.table} SET {self.name} = {self.value} WHERE {self.key} = %s"
                cursor.execute(sql, [key])
        except DatabaseError:
            return False
        return True

    def key_now(self, key: Any) -> Any:
        """Return the primary key of the row after the change."""
        if not self.field.primary_key:
            return key
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT {self.value}", [])
            return str(cursor.fetchone()[0])

    def restore(self, value: Any, key: Any) -> None:
        value = str(value) if isinstance(value, datetime) else value
        sql = f"UPDATE {self.table} SET {self.name} = %s WHERE {self.key} = %s"
        with self.connection.cursor() as cursor:
            cursor.execute(sql, [value, key])
