"""Recurring tasks: what is scheduled, when it runs next, and when it last did."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.db.models import OuterRef, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern

from ..dialects.database import Database
from ..errors import SteadyQueueError
from ..models import RecurringExecution, RecurringTask
from ..schedules.validators import stored_schedule
from . import databases, texts
from .actions import BATCH, record, tell
from .base import QueueAdmin
from .corrupt_rows import column, read_each
from .detail import Facts, Section, Table
from .filters import DatabaseFilter
from .job_texts import arguments_of
from .keyset import is_storable

#: Runs that the page of a task names, before and after the present.
PAST_RUNS, NEXT_RUNS = 20, 3

#: What can be done with a task: its label, what is told afterwards, and what has to be permitted.
VERBS: dict[str, tuple[str, str, str, Callable[[RecurringTask], Any]]] = {
    "run": ("Run now", "Enqueued", "run", RecurringTask.run_now),
    "disable": ("Disable", "Disabled", "switch", lambda row: row.disable(using=row._state.db)),
    "enable": ("Enable", "Enabled", "switch", lambda row: row.enable(using=row._state.db)),
}


class RecurringTaskAdmin(QueueAdmin):
    """The schedules of the code, and those that were added at run time."""

    list_filter = (DatabaseFilter,)
    actions = ("run_now", "disable", "enable")

    def has_run_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "run_recurringtask")

    def has_switch_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "change_recurringtask")

    # --- the list ---

    def get_list_display(self, request: HttpRequest) -> Any:
        return (key, task, schedule, zone, state, next_run, last_run)

    def dress(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        using = databases.chosen(request)
        slots = RecurringExecution.objects.using(using)
        latest = slots.filter(task_key=OuterRef("key")).order_by("-run_at").values("pk")[:1]
        tasks = self.rows(request).filter(pk__in=[row.pk for row in rows])
        ids = [pk for pk in tasks.values_list(Subquery(latest), flat=True) if pk is not None]
        last = {slot.task_key: slot.run_at for slot in slots.filter(pk__in=ids)}
        present = Database.of(using).current_time()
        for row in rows:
            row.last_run = last.get(row.pk)
            row.next_runs = next_runs(row, present, NEXT_RUNS)
        return rows

    @admin.action(permissions=["run"], description="Run selected tasks now")
    def run_now(self, request: HttpRequest, queryset: Any) -> None:
        self._on_list(request, "run")

    @admin.action(permissions=["switch"], description="Disable selected tasks")
    def disable(self, request: HttpRequest, queryset: Any) -> None:
        self._on_list(request, "disable")

    @admin.action(permissions=["switch"], description="Enable selected tasks")
    def enable(self, request: HttpRequest, queryset: Any) -> None:
        self._on_list(request, "enable")

    def _on_list(self, request: HttpRequest, verb: str) -> None:
        chosen, rows = self.chosen(request), self.rows(request)
        if chosen is None:
            keys = list(rows.order_by("pk").values_list("pk", flat=True))
        else:
            keys = sorted(each for each in chosen if is_storable(each))
        for start in range(0, len(keys), BATCH):
            part = keys[start : start + BATCH]
            found = read_each(rows, part)
            for key in filter(found.__contains__, part):
                row = found[key]
                if row is None:
                    damaged = f"Recurring task {texts.name(key)} is damaged."
                    self.message_user(request, damaged, messages.ERROR)
                elif self.may_act(request, VERBS[verb][2], row):
                    self._do(request, verb, row)

    def _do(self, request: HttpRequest, verb: str, row: RecurringTask) -> None:
        _, past, _, do = VERBS[verb]
        told = texts.name(row.key)
        try:
            result = do(row)
        except SteadyQueueError as error:
            self.message_user(request, texts.clean(error), messages.ERROR)
            return
        if result is False:
            self.message_user(request, f"Already {past.lower()}: {told}.", messages.WARNING)
            return
        message = f"{past} as job #{result.id}" if verb == "run" else past
        if getattr(result, "discarded", False):
            message = "Not enqueued, for its concurrency limit is reached"
        self.message_user(request, f"{message}: {told}.", messages.SUCCESS)
        tell(request, told, message)
        record(request, RecurringTask, message, {row.key: told})

    # --- the page of one task ---

    def get_urls(self) -> list[URLPattern]:
        own = [
            self.post_path(verb, permission, partial(self._do_one, verb))
            for verb, (_, _, permission, _) in VERBS.items()
        ]
        return [*own, *super().get_urls()]

    def detail(self, request: HttpRequest, row: Any) -> HttpResponse:
        self.dress(request, [row])
        useless = "enable" if row.enabled else "disable"
        buttons = [
            (label, self.url(request, verb, quote(row.key)))
            for verb, (label, _, permission, _) in VERBS.items()
            if verb != useless and self.may_act(request, permission, row)
        ]
        sections = self._sections(request, row)
        return self.page_of(request, row.key, texts.name(row.key), sections, buttons)

    def _do_one(self, verb: str, request: HttpRequest, row: Any) -> HttpResponse:
        self._do(request, verb, row)
        return HttpResponseRedirect(self.url(request, "change", quote(row.key)))

    def _sections(self, request: HttpRequest, row: Any) -> list[Section]:
        sections = [_facts(row)]
        if self.may(request, "view_arguments"):
            sections.append(arguments_of(row))
        slots = RecurringExecution.objects.using(row._state.db).filter(task_key=row.key)
        past = [
            (
                texts.moment(slot.run_at),
                "" if slot.job_id is None else self.job_link(request, slot.job_id),
            )
            for slot in slots.order_by("-run_at")[:PAST_RUNS]
        ]
        note = "" if past else "None yet, or none that is kept."
        return [*sections, Table("Last runs", ("Due at", "Job"), past, note)]


def next_runs(row: RecurringTask, present: datetime, count: int) -> list[datetime]:
    """Return the next runs of a task; of one that is disabled, or that nobody can read, none."""
    found: list[datetime] = []
    try:
        schedule = stored_schedule(row.schedule, row.timezone)
        while row.enabled and len(found) < count:
            found.append(schedule.next_after(found[-1] if found else present))
    except Exception:  # Whatever somebody has written there must not break the page.
        return []
    return found


def _facts(row: Any) -> Section:
    facts = [
        ("Key", texts.clean(row.key)),
        ("Task", texts.clean(row.task_path)),
        ("Description", texts.clean(row.description)),
        ("State", state(row)),
        ("From", "the code" if row.static else "a call at run time"),
        ("Schedule", texts.clean(row.schedule)),
        ("Time zone", texts.clean(row.timezone)),
        ("Next runs", ", ".join(map(texts.moment, row.next_runs))),
        ("Missed slots", texts.clean(row.catch_up)),
        ("Queue", texts.clean(row.queue_name)),
        ("Priority", row.priority),
        ("Backend", texts.clean(row.backend_name)),
    ]
    return Facts("Recurring task", facts)


@column("key")
def key(row: Any) -> str:
    return texts.name(row.key)


@column("task")
def task(row: Any) -> str:
    return texts.short_path(row.task_path)


@column("schedule")
def schedule(row: Any) -> str:
    return texts.name(row.schedule)


@column("time zone")
def zone(row: Any) -> str:
    return texts.name(row.timezone)


@column("state")
def state(row: Any) -> str:
    return "enabled" if row.enabled else "disabled"


@column("next run")
def next_run(row: Any) -> str:
    return texts.moment(row.next_runs[0]) if row.next_runs else ""


@column("last run")
def last_run(row: Any) -> str:
    return texts.moment(row.last_run)
