"""Recurring tasks: their schedules, next runs and last runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path

from ..dialects import is_storable
from ..errors import SteadyQueueError
from ..listings.damage import ERRORS, is_damage, read_each
from ..listings.recurring import listed
from ..listings.run_outcomes import RunOutcome, outcomes_of
from ..models import RecurringExecution, RecurringTask
from ..schedules.stored import opened_arguments
from . import actions, databases, texts
from .actions import BATCH, act_and_record, add_history, log_action
from .base import QueueAdmin
from .detail import Section, Table
from .filters import DatabaseFilter
from .job_texts import arguments_section
from .recurring_columns import COLUMNS, task_fields, told
from .schedule_pages import IN_CODE, add_page, edit_page, is_in_code, remove

#: Number of past and future runs on the page of a task.
PAST_RUNS, NEXT_RUNS = 20, 3

#: Actions: label, past participle for messages, permission, and function.
ACTIONS: dict[str, tuple[str, str, str, Callable[[RecurringTask], Any]]] = {
    "run": ("Run now", "Enqueued", "run", RecurringTask.run_now),
    "disable": ("Disable", "Disabled", "switch", lambda row: row.disable(using=row._state.db)),
    "enable": ("Enable", "Enabled", "switch", lambda row: row.enable(using=row._state.db)),
}

T = TypeVar("T")


class RecurringTaskAdmin(QueueAdmin):
    """Recurring tasks defined in code or added at run time; users may change the latter."""

    list_filter = (DatabaseFilter,)
    actions = ("run_now", "disable", "enable", "remove")

    def has_run_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "run_recurringtask")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may(request, "add_recurringtask")

    def has_edit_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "change_recurringtask")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "delete_recurringtask")

    def has_view_arguments_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "view_arguments")

    has_switch_permission = has_edit_permission

    # --- the list ---

    def get_actions(self, request: HttpRequest, action_location: Any = None) -> Any:
        # Django 6.1 wants the parameter, and older versions do not know it.
        where = {} if action_location is None else {"action_location": action_location}
        found = super().get_actions(request, **where)
        found.pop("delete_selected", None)  # It would delete those in code as well.
        return found

    def get_preserved_filters(self, request: HttpRequest) -> str:
        # Django adds them to the link to the form: it stays with the database.
        return databases.query_string(request).removeprefix("?")

    def get_list_display(self, request: HttpRequest) -> Any:
        return COLUMNS

    def annotate_rows(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        tasks = self.rows(request).filter(pk__in=[row.pk for row in rows])
        schedules = listed(tasks, rows, NEXT_RUNS)
        outcomes = self._outcomes(request, [each.last for each in schedules if each.last])
        for row, each in zip(rows, schedules, strict=True):
            row.listed = each
            row.last_outcome = outcomes.get(each.last.job_id) if each.last else None
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

    @admin.action(permissions=["delete"], description="Remove selected tasks")
    def remove(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        found = dict(self._read(request, self._keys(request)))
        # Who may remove rows may remove damaged ones.
        may = [key for key in found if self.is_permitted(request, "delete", found[key])]
        if not self.confirmed(request):
            number = f"{len(may):,} recurring task{'s'[: len(may) != 1]}"
            question = f"Remove {number}? Their enqueued jobs stay."
            return self.confirmation(request, question, "Remove", request.get_full_path())
        for key in self._in_time(request, may):
            remove(self, request, key)
        return None

    def _keys(self, request: HttpRequest) -> list[str]:
        """Return the keys that are ticked in the list, or all of them, in their order."""
        chosen = self.selected_keys(request)
        if chosen is None:
            return list(self.rows(request).order_by("pk").values_list("pk", flat=True))
        return sorted(each for each in chosen if is_storable(each))

    def _on_list(self, request: HttpRequest, verb: str) -> None:
        for key, row in self._in_time(request, self._read(request, self._keys(request))):
            if row is None:
                damaged = f"Recurring task {texts.name(key)} is damaged."
                self.message_user(request, damaged, messages.ERROR)
            elif self.is_permitted(request, ACTIONS[verb][2], row):
                self._do(request, verb, row)

    def _read(self, request: HttpRequest, keys: Sequence[str]) -> Iterator[tuple[str, Any]]:
        rows = self.rows(request)
        for start in range(0, len(keys), BATCH):
            part = keys[start : start + BATCH]
            found = read_each(rows, part)
            yield from ((key, found[key]) for key in part if key in found)

    def _in_time(self, request: HttpRequest, wanted: Iterable[T]) -> Iterator[T]:
        """Yield what there is time for, and say where that was not all."""
        end = time.monotonic() + actions.TIME_LIMIT
        for number, each in enumerate(wanted):
            if number and time.monotonic() > end:
                name = texts.name(each[0] if isinstance(each, tuple) else each)
                stopped = (
                    f"Stopped after {actions.TIME_LIMIT:g} seconds and {number:,} recurring tasks. "
                    f"{name} and those after it in the list are left as they were: choose these."
                )
                self.message_user(request, stopped, messages.WARNING)
                return
            yield each

    def _do(self, request: HttpRequest, verb: str, row: RecurringTask) -> None:
        _, past, _, do = ACTIONS[verb]
        name = texts.name(row.key)

        def record(result: Any) -> None:
            if result is not False:
                message = _message(verb, past, result)
                add_history(request, RecurringTask, message, {row.key: name})

        try:
            result = act_and_record(databases.requested(request), partial(do, row), record)
        except SteadyQueueError as error:
            self.message_user(request, texts.clean(error), messages.ERROR)
            return
        if result is False:
            self.message_user(request, f"Already {past.lower()}: {name}.", messages.WARNING)
            return
        message = _message(verb, past, result)
        self.message_user(request, f"{message}: {name}.", messages.SUCCESS)
        log_action(request, name, message)

    # --- the page of one task ---

    def get_urls(self) -> list[URLPattern]:
        own = [
            self.action_path(verb, permission, partial(self._do_one, verb))
            for verb, (_, _, permission, _) in ACTIONS.items()
        ]
        name = f"{self.opts.app_label}_{self.opts.model_name}_edit"
        view = self.admin_site.admin_view(self.edit_view)
        return [path("<path:object_id>/edit/", view, name=name), *own, *super().get_urls()]

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        return add_page(self, request)

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the form of a task, or do what it says."""
        row = self._row_to(request, "edit", object_id)
        if isinstance(row, HttpResponse):
            return row
        try:
            return edit_page(self, request, row)
        except ERRORS as error:
            if not is_damage(error):
                raise
        damaged = f"Recurring task {texts.name(row.key)} is damaged: remove it in the list."
        self.message_user(request, damaged, messages.ERROR)
        return HttpResponseRedirect(self.url(request, "changelist"))

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self._row_to(request, "delete", object_id)
        if isinstance(row, HttpResponse):
            return row
        page = self.url(request, "change", quote(row.key))
        if is_in_code(row):
            self.message_user(request, IN_CODE, messages.ERROR)
            return HttpResponseRedirect(page)
        if not (request.method == "POST" and self.confirmed(request)):
            question = f"Remove the recurring task {texts.name(row.key)}? Its enqueued jobs stay."
            return self.confirmation(request, question, "Remove", page)
        removed = remove(self, request, row.key)
        return HttpResponseRedirect(self.url(request, "changelist") if removed else page)

    def _row_to(self, request: HttpRequest, permission: str, object_id: str) -> Any:
        """Return the row that the user may do something with, or an answer if there is none."""
        if not self.is_permitted(request, permission):
            raise PermissionDenied
        try:
            row = self.get_object(request, unquote(object_id))
        except ERRORS as error:
            if not is_damage(error):
                raise
            return self.not_found(request, object_id, "is damaged: remove it in the list")
        if row is None:
            return self.not_found(request, object_id)
        if not self.is_permitted(request, permission, row):
            raise PermissionDenied
        return row

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

    def _changing(self, request: HttpRequest, row: Any) -> list[Section]:
        """Return links to where a task is changed and removed, as far as the user may."""
        if is_in_code(row):
            return [Table("Change", (), (), IN_CODE)]
        pages = [
            (label, self.url(request, name, quote(row.key)))
            for label, name in (("Edit", "edit"), ("Remove", "delete"))
            if self.is_permitted(request, name, row)
        ]
        return [Table("Change", (), (), pages=pages)] if pages else []

    def _sections(self, request: HttpRequest, row: Any) -> list[Section]:
        sections = [task_fields(row), *self._changing(request, row)]
        if self.has_view_arguments_permission(request, row):
            sections.append(arguments_section(row, opened_arguments))
        runs = RecurringExecution.objects.using(row._state.db).filter(task_key=row.key)
        last = list(runs.order_by("-run_at")[:PAST_RUNS])
        outcomes = self._outcomes(request, last)
        past = [
            (
                texts.moment(run.run_at),
                "" if run.job_id is None else self.job_link(request, run.job_id),
                *told(outcomes.get(run.job_id)),
            )
            for run in last
        ]
        note = "" if past else "None, or none that are still kept."
        headings = ("Due at", "Job", "Outcome", "Duration")
        return [*sections, Table("Last runs", headings, past, note)]


def _message(verb: str, past: str, result: Any) -> str:
    """Return what has been done to a task."""
    if getattr(result, "duplicate", False):
        return f"Not enqueued because job #{result.id} has its unique key"
    if getattr(result, "discarded", False):
        return "Not enqueued because its concurrency limit is reached"
    return f"{past} as job #{result.id}" if verb == "run" else past
