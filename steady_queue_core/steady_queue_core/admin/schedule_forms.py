"""The forms of recurring tasks that are added at run time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import DatabaseError, connections
from django.db.transaction import atomic
from django.utils.crypto import constant_time_compare, salted_hmac

from ..configured_backends import backends_on
from ..dialects.database import Database
from ..dynamic_tasks import change_recurring_task, schedule_recurring_task
from ..errors import (
    RecurringTaskError,
    RecurringTaskExistsError,
    StaticRecurringTaskError,
    UnknownRecurringTaskError,
    UnregisteredTaskError,
    UnusableRecurringTaskError,
)
from ..listings.recurring import outlook_of
from ..models import RecurringTask
from ..own_tasks import OWN_TASKS
from ..schedules import validators
from ..schedules.interval import EVERY
from ..schedules.once import AT
from ..schedules.span import AnySchedule
from ..schedules.stored import DEFINING
from ..schedules.values import VALUES
from ..tasks.registry import find_task
from .schedule_fields import (
    JSONField,
    ReadField,
    field_of,
    in_short,
    read_schedule,
    refusals,
    shown,
    zone_for,
)

#: Next runs that a preview shows.
PREVIEWED = 5
CONFLICT = (
    "Somebody has changed this recurring task since this page was opened. Nothing was stored: open "
    "it again, and see what has changed."
)
BUSY = "The database was busy. Nothing was stored: try again."
NOTHING = "Nothing was changed."


class _Undone(Exception):
    """Takes back what a preview has stored."""


class ScheduleForm(forms.Form):
    """What adding and changing have in common. ``rehearse()`` and ``store()`` do what the API does,
    and put what it refuses beside a field."""

    schedule = ReadField(
        read_schedule,
        max_length=255,
        help_text="A cron expression such as 30 7 * * 1-5, an interval such as every 90 minutes, "
        "or a single run: at 2030-12-24 18:00.",
    )
    timezone = forms.CharField(
        label="Time zone",
        required=False,
        max_length=64,
        help_text="Of a cron expression, such as Europe/Berlin; empty for that of the project.",
    )
    args = JSONField(list, label="Positional arguments")
    kwargs = JSONField(dict, label="Named arguments")
    field_order = ("key", "task", "schedule", "timezone", "args", "kwargs")

    def __init__(self, *arguments: Any, using: str, with_arguments: bool, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.using = using
        if not with_arguments:
            del self.fields["args"], self.fields["kwargs"]
        self.fields |= {value.name: field_of(value) for value in VALUES}
        self.order_fields([*self.field_order, *(value.name for value in VALUES)])

    @property
    def name(self) -> str:
        """The key of the task."""
        raise NotImplementedError

    def apply(self) -> RecurringTask:
        """Store what was typed in the current transaction."""
        raise NotImplementedError

    # --- values ---

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        for value in VALUES:
            if value.name in given:
                self._check(value.name, value.checked, given[value.name])
        if "schedule" in given:
            self._check("schedule", self._schedule_in, "")
        if "schedule" in given and given.get("timezone"):
            self._check("timezone", self._schedule_in, given["timezone"])
        return given

    def _check(self, field: str, check: Callable[[Any], object], given: Any) -> None:
        try:
            check(given)
        except (ValueError, TypeError) as error:
            self.add_error(field, in_short(error, self.name))

    def _schedule_in(self, zone: str) -> AnySchedule:
        timing = self.cleaned_data["schedule"]
        return validators.checked_schedule(timing, zone_for(timing, zone))

    @property
    def timing(self) -> dict[str, Any]:
        """The schedule and its time zone, as the API takes them."""
        schedule, zone = self.cleaned_data["schedule"], self.cleaned_data["timezone"]
        return {"schedule": schedule, "timezone": zone_for(schedule, zone)}

    # --- what is done with them ---

    def rehearse(self) -> list[datetime]:
        """Do all that storing does, and take it back; return the next runs."""
        runs: list[datetime] = []
        try:
            with self._trying():
                row = self.apply()
                row.enabled = True
                present = Database.of(self.using).current_time()
                runs = outlook_of(row, None, present, PREVIEWED).next_runs
                raise _Undone
        except _Undone:
            return runs

    def store(self) -> RecurringTask | None:
        """Store what was typed; return ``None`` if it is refused, which the errors tell."""
        row = None
        with self._trying():
            row = self.apply()
        return row

    @contextmanager
    def _trying(self) -> Iterator[None]:
        database = Database.of(self.using)
        try:
            # Inside the transaction of a request, one that may be taken back alone.
            is_inside = connections[self.using].in_atomic_block
            with atomic(using=self.using) if is_inside else database.transaction():
                yield
        except ValidationError as error:
            self.add_error(None, error)
        except (RecurringTaskError, ValueError, TypeError) as error:
            self.add_error(self._field_of(error), in_short(error, self.name))
        except DatabaseError as error:
            if not database.is_contention(error):
                raise
            self.add_error(None, BUSY)

    def _field_of(self, error: Exception) -> str | None:
        field: str | None = "schedule"
        if isinstance(error, RecurringTaskExistsError | StaticRecurringTaskError):
            field = "key"
        elif isinstance(error, UnknownRecurringTaskError):
            field = None
        elif isinstance(error, UnusableRecurringTaskError):
            field = "args"
        elif str(error).startswith(f"the recurring task {self.name!r}: repeats"):
            field = "repeats"
        return field if field in self.fields else None


class AddScheduleForm(ScheduleForm):
    """The form of a new recurring task."""

    key = forms.CharField(
        max_length=255, strip=False, help_text="Names this schedule; unique in the project."
    )
    task = forms.CharField(
        max_length=255,
        widget=forms.TextInput(attrs={"list": "known-tasks", "class": "vTextField"}),
        help_text="The path of a task, such as shop.tasks.send_report.",
    )
    backend = forms.ChoiceField(required=False, help_text="Empty for that of the task.")

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.backends = list(backends_on(self.using))
        backend: Any = self.fields["backend"]
        backend.choices = [("", ""), *((each, each) for each in self.backends)]
        if len(self.backends) < 2:
            del self.fields["backend"]
        for name in {"args", "kwargs"} & set(self.fields):
            self.fields[name].help_text = "JSON; empty for none."
        self.fields["queue_name"].help_text = "Empty for that of the task."
        self.fields["priority"].help_text += " Empty for that of the task."
        self.fields["description"].help_text = "Empty for the first line of the task's docstring."

    @property
    def name(self) -> str:
        return str(self.data.get(self.add_prefix("key"), ""))

    def clean_key(self) -> str:
        with refusals():
            return validators.checked_key(self.cleaned_data["key"])

    def clean_task(self) -> Any:
        path = self.cleaned_data["task"].strip()
        if path in OWN_TASKS:
            raise ValidationError("Steady Queue enqueues this task itself.")
        try:
            return find_task(path)
        except UnregisteredTaskError as error:
            raise ValidationError(str(error)) from None

    def apply(self) -> RecurringTask:
        given = self.cleaned_data
        task, wanted = given["task"], given.get("backend")
        if not wanted and task.backend not in self.backends:
            wanted = self.backends[0]
        options: Any = {value.name: given[value.name] for value in VALUES}
        return schedule_recurring_task(
            given["key"],
            task.using(backend=wanted) if wanted else task,
            args=given.get("args") or (),
            kwargs=given.get("kwargs"),
            **options | self.timing | {"description": given["description"] or None},
        )


class ChangeScheduleForm(ScheduleForm):
    """The form of one that is there. Arguments are not shown, and stay unless they are given."""

    version = forms.CharField(widget=forms.HiddenInput)

    def __init__(self, *arguments: Any, row: RecurringTask, **named: Any) -> None:
        self.row = row
        super().__init__(*arguments, initial=initial_of(row), **named)
        self.fields["queue_name"].required = self.fields["priority"].required = True
        for name in {"args", "kwargs"} & set(self.fields):
            self.fields[name].help_text = (
                "JSON. If both are empty, the arguments stay as they are; otherwise these two "
                "replace them."
            )

    @property
    def name(self) -> str:
        return str(self.row.key)

    @property
    def changes(self) -> dict[str, Any]:
        """What differs from what was shown, as the API takes it."""
        given, changed = self.cleaned_data, set(self.changed_data)
        found = {value.name: given[value.name] for value in VALUES if value.name in changed}
        if changed & {"schedule", "timezone"}:
            found |= self.timing
        if given.get("args") is not None or given.get("kwargs") is not None:
            found |= {"args": given["args"] or [], "kwargs": given["kwargs"] or {}}
        return found

    def apply(self) -> RecurringTask:
        database, changes = Database.of(self.using), self.changes
        rows = RecurringTask.objects.using(self.using).filter(pk=self.row.pk)
        # Nobody changes it from here to the end of the transaction.
        current = database.lock_rows(rows, wait=True).first()
        if current is not None and not constant_time_compare(
            version_of(current), self.cleaned_data["version"]
        ):
            raise ValidationError(CONFLICT)
        if current is not None and not changes:
            return current
        return change_recurring_task(
            self.row.key, backend=next(iter(backends_on(self.using))), **changes
        )


def initial_of(row: RecurringTask) -> dict[str, Any]:
    """Return what the form of a task shows at first."""
    has_zone = not row.schedule.startswith((EVERY, AT))
    return {
        "schedule": row.schedule,
        "timezone": row.timezone if has_zone else "",
        "version": version_of(row),
        **{value.name: shown(getattr(row, value.name)) for value in VALUES},
    }


def version_of(row: RecurringTask) -> str:
    """Return a text that differs once the definition in a row does. It does not tell the arguments:
    who may not see these cannot try which ones they are."""
    values = [str(getattr(row, name)) for name in DEFINING]
    return salted_hmac("steady_queue.schedule", repr(values), algorithm="sha256").hexdigest()
