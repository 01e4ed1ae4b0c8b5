"""Recurring tasks: their schedules, next runs and last runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern

from ..dialects.database import Database
from ..errors import SteadyQueueError
from ..listings.damage import read_each
from ..listings.keyset import is_storable
from ..listings.recurring import last_executions
from ..listings.run_outcomes import RunOutcome, outcomes_of
from ..listings.run_outlook import outlook_of
from ..models import RecurringExecution, RecurringTask
from ..schedules.stored import opened_arguments
from . import databases, texts
from .actions import BATCH, add_history, log_action
from .base import QueueAdmin
from .corrupt_rows import column
from .detail import Fields, Section, Table
from .filters import DatabaseFilter
from .job_texts import arguments_section

#: Number of past and future runs on the page of a task.
PAST_RUNS, NEXT_RUNS = 20, 3

#: Actions: label, past participle for messages, permission, and function.
ACTIONS: dict[str, tuple[str, str, str, Callable[[RecurringTask], Any]]] = {
    "run": ("Run now", "Enqueued", "run", RecurringTask.run_now),
    "disable": ("Disable", "Disabled", "switch", lambda row: row.disable(using=row._state.db)),
    "enable": ("Enable", "Enabled", "switch", lambda row: row.enable(using=row._state.db)),
}


class RecurringTaskAdmin(QueueAdmin):
    """Recurring tasks defined in code or added at run time."""

    list_filter = (DatabaseFilter,)
    actions = ("run_now", "disable", "enable")

    def has_run_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "run_recurringtask")

    def has_switch_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "change_recurringtask")

    # --- the list ---

    def get_list_display(self, request: HttpRequest) -> Any:
        return (key, task, schedule, zone, state, next_run, last_run, last_outcome, left)

    def annotate_rows(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        using = databases.requested(request)
        tasks = self.rows(request).filter(pk__in=[row.pk for row in rows])
        last = last_executions(using, tasks)
        outcomes = self._outcomes(request, last.values())
        present = Database.of(using).current_time()
        for row in rows:
            run = last.get(row.pk)
            row.last_run = run and run.run_at
            row.last_outcome = outcomes.get(run.job_id) if run else None
            row.outlook = outlook_of(row, row.last_run, present, NEXT_RUNS)
        return rows

    def _outcomes(self, request: HttpRequest, runs: Iterable[Any]) -> dict[Any, RunOutcome]:
        """Return what has become of runs, by the ids of their jobs, as far as the user may see."""
        visible, ids = self.visible_jobs(request), [run.job_id for run in runs]
        return outcomes_of(visible.jobs, ids, are_all=visible.is_unrestricted)

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
        chosen, rows = self.selected_keys(request), self.rows(request)
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
                elif self.is_permitted(request, ACTIONS[verb][2], row):
                    self._do(request, verb, row)

    def _do(self, request: HttpRequest, verb: str, row: RecurringTask) -> None:
        _, past, _, do = ACTIONS[verb]
        name = texts.name(row.key)
        try:
            result = do(row)
        except SteadyQueueError as error:
            self.message_user(request, texts.clean(error), messages.ERROR)
            return
        if result is False:
            self.message_user(request, f"Already {past.lower()}: {name}.", messages.WARNING)
            return
        message = f"{past} as job #{result.id}" if verb == "run" else past
        if getattr(result, "discarded", False):
            message = "Not enqueued because its concurrency limit is reached"
        if getattr(result, "duplicate", False):
            message = f"Not enqueued because job #{result.id} has its unique key"
        self.message_user(request, f"{message}: {name}.", messages.SUCCESS)
        log_action(request, name, message)
        add_history(request, RecurringTask, message, {row.key: name})

    # --- the page of one task ---

    def get_urls(self) -> list[URLPattern]:
        own = [
            self.action_path(verb, permission, partial(self._do_one, verb))
            for verb, (_, _, permission, _) in ACTIONS.items()
        ]
        return [*own, *super().get_urls()]

    def detail(self, request: HttpRequest, row: Any) -> HttpResponse:
        self.annotate_rows(request, [row])
        no_op = "enable" if row.enabled else "disable"
        buttons = [
            (label, self.url(request, verb, quote(row.key)))
            for verb, (label, _, permission, _) in ACTIONS.items()
            if verb != no_op and self.is_permitted(request, permission, row)
        ]
        sections = self._sections(request, row)
        return self.render_detail(request, row.key, texts.name(row.key), sections, buttons)

    def _do_one(self, verb: str, request: HttpRequest, row: Any) -> HttpResponse:
        self._do(request, verb, row)
        return HttpResponseRedirect(self.url(request, "change", quote(row.key)))

    def _sections(self, request: HttpRequest, row: Any) -> list[Section]:
        sections = [_fields(row)]
        if self.may(request, "view_arguments"):
            sections.append(arguments_section(row, opened_arguments))
        runs = RecurringExecution.objects.using(row._state.db).filter(task_key=row.key)
        last = list(runs.order_by("-run_at")[:PAST_RUNS])
        outcomes = self._outcomes(request, last)
        past = [
            (
                texts.moment(run.run_at),
                "" if run.job_id is None else self.job_link(request, run.job_id),
                *_told(outcomes.get(run.job_id)),
            )
            for run in last
        ]
        note = "" if past else "None, or none that are still kept."
        headings = ("Due at", "Job", "Outcome", "Duration")
        return [*sections, Table("Last runs", headings, past, note)]


def _told(outcome: RunOutcome | None) -> tuple[str, str]:
    if outcome is None:
        return "", ""
    took = outcome.duration
    return outcome.words, "" if took is None else texts.duration(took)


def _fields(row: Any) -> Section:
    fields = [
        ("Key", texts.clean(row.key)),
        ("Task", texts.clean(row.task_path)),
        ("Description", texts.clean(row.description)),
        ("State", state(row)),
        ("Defined", "in code" if row.static else "at run time"),
        ("Schedule", texts.clean(row.schedule)),
        ("Time zone", texts.clean(row.timezone)),
        *_limits(row),
        ("Next runs", ", ".join(map(texts.moment, row.outlook.next_runs))),
        ("Missed runs", texts.clean(row.catch_up)),
        ("Overlapping runs", texts.clean(row.overlap)),
        ("Queue", texts.clean(row.queue_name)),
        ("Priority", row.priority),
        ("Backend", texts.clean(row.backend_name)),
    ]
    return Fields("Recurring task", fields)


def _limits(row: Any) -> list[tuple[str, Any]]:
    """Return what limits the runs of a task, if anything does."""
    limits = [
        ("Starts", texts.moment(row.starts_at)),
        ("Ends", texts.moment(row.ends_at)),
        ("Runs", f"{left(row)} left" if row.repeats is not None else ""),
        ("Waiting", texts.moment(row.waiting_at)),
    ]
    return [(label, value) for label, value in limits if value]


@column("key")
def key(row: Any) -> str:
    return texts.named(row.key)


@column("task")
def task(row: Any) -> str:
    return texts.short_path(row.task_path)


@column("schedule")
def schedule(row: Any) -> str:
    return texts.named(row.schedule)


@column("time zone")
def zone(row: Any) -> str:
    return texts.named(row.timezone)


@column("state")
def state(row: Any) -> str:
    if not row.enabled:
        return "disabled"
    return "finished" if row.outlook.is_finished else "enabled"


@column("next run")
def next_run(row: Any) -> str:
    return texts.moment(row.outlook.next_runs[0]) if row.outlook.next_runs else ""


@column("last run")
def last_run(row: Any) -> str:
    return texts.moment(row.last_run)


@column("outcome")
def last_outcome(row: Any) -> str:
    words, took = _told(row.last_outcome)
    return f"{words} ({took})" if took else words


@column("left")
def left(row: Any) -> str:
    """Return how many runs are left of those that are counted."""
    if row.repeats is None:
        return ""
    try:
        return f"{row.runs_left} of {row.repeats}"
    except TypeError:  # SQLite stores anything as a number.
        return texts.name(f"{row.runs} of {row.repeats}")
