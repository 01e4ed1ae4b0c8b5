"""The pages on which recurring tasks are added, changed and removed."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.contrib.admin.utils import quote
from django.core.exceptions import ImproperlyConfigured
from django.forms import Media
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from ..configuration import ConfigurationError
from ..configured_backends import backends_on, options_on
from ..dynamic_tasks import unschedule_recurring_task
from ..errors import RecurringTaskError
from ..listings.damage import ERRORS, is_damage
from ..models import RecurringTask
from ..schedules.definition import is_registered
from ..tasks.registry import registered_tasks
from . import databases, texts
from .actions import add_history, log_action
from .schedule_forms import NOTHING, AddScheduleForm, ChangeScheduleForm, ScheduleForm

TEMPLATE = "admin/steady_queue/schedule_form.html"
#: Most tasks that are proposed.
MOST_TASKS = 500
IN_CODE = "It is defined in the code, with @recurring: it can be changed and removed only there."
NOT_LOOKED_AT = (
    "STEADY_QUEUE['scheduler']['dynamic_tasks_enabled'] is not set here: a scheduler with these "
    "settings does not look at recurring tasks that are added at run time."
)


def is_in_code(row: Any) -> bool:
    """Whether the code defines a task, so that it cannot be changed here."""
    return bool(row.static) or is_registered(row.key)


def add_page(page: Any, request: HttpRequest) -> HttpResponse:
    """Show the form of a new recurring task, or do what it says."""
    with_arguments = page.has_view_arguments_permission(request)
    form = AddScheduleForm(
        request.POST if request.method == "POST" else None,
        using=databases.requested(request),
        with_arguments=with_arguments,
    )
    return _answer(page, request, form, None)


def edit_page(page: Any, request: HttpRequest, row: Any) -> HttpResponse:
    """Show the form of a recurring task, or do what it says."""
    if is_in_code(row):
        return _back(page, request, row, IN_CODE, messages.ERROR)
    form = ChangeScheduleForm(
        request.POST if request.method == "POST" else None,
        row=row,
        using=databases.requested(request),
        with_arguments=page.has_view_arguments_permission(request, row),
    )
    return _answer(page, request, form, row)


def _answer(page: Any, request: HttpRequest, form: ScheduleForm, row: Any) -> HttpResponse:
    runs: list[datetime] | None = None
    if request.method == "POST" and form.is_valid():
        if "_preview" in request.POST:
            runs = form.rehearse()
            runs = None if form.errors else runs
        elif isinstance(form, ChangeScheduleForm) and not form.changes:
            return _back(page, request, row, NOTHING, messages.WARNING)
        elif (stored := form.store()) is not None:
            return _stored(page, request, form, stored)
    title = "Add recurring task" if row is None else f"Change {texts.name(row.key)}"
    context = {
        **page.admin_site.each_context(request),
        "title": title,
        "opts": page.opts,
        "original": None if row is None else texts.name(row.key),
        "add": row is None,
        "change": row is not None,
        "has_view_permission": True,
        "is_popup": False,
        "media": Media(),
        "form": form,
        "task": "" if row is None else texts.clean(row.task_path),
        "tasks": sorted({each.module_path for each in registered_tasks()})[:MOST_TASKS],
        "runs": None if runs is None else [texts.moment(run) for run in runs],
        "warning": _warning(form.using),
        "back": _url(page, request, row),
    }
    request.current_app = page.admin_site.name
    return TemplateResponse(request, TEMPLATE, context)


def _stored(
    page: Any, request: HttpRequest, form: ScheduleForm, row: RecurringTask
) -> HttpResponse:
    name = texts.name(row.key)
    if isinstance(form, ChangeScheduleForm):
        message, flag = f"Changed: {', '.join(form.changes)}", CHANGE
    else:
        message, flag = "Added", ADDITION
    log_action(request, name, message)
    add_history(request, RecurringTask, message, {row.key: name}, flag)
    return _back(page, request, row, f"{message}: {name}." if flag == ADDITION else f"{message}.")


def _back(
    page: Any, request: HttpRequest, row: Any, message: str, level: int = messages.SUCCESS
) -> HttpResponse:
    page.message_user(request, message, level)
    return HttpResponseRedirect(_url(page, request, row))


def _url(page: Any, request: HttpRequest, row: Any) -> str:
    # A sharded backend may have chosen another database.
    if row is None or row._state.db not in (None, databases.requested(request)):
        return str(page.url(request, "changelist"))
    return str(page.url(request, "change", quote(row.key)))


def _warning(using: str) -> str:
    with suppress(ConfigurationError, ImproperlyConfigured):
        return "" if options_on(using).scheduler.dynamic_tasks_enabled else NOT_LOOKED_AT
    return ""


def remove(page: Any, request: HttpRequest, key: str) -> bool:
    """Remove a recurring task, and tell of it; return whether that was done."""
    using, name = databases.requested(request), texts.name(key)
    try:
        unschedule_recurring_task(key, backend=next(iter(backends_on(using))))
    except RecurringTaskError as error:
        page.message_user(request, texts.clean(error), messages.ERROR)
        return False
    except ERRORS as error:
        if not is_damage(error):
            raise
        message = f"Recurring task {name} is damaged, and cannot be removed here."
        page.message_user(request, message, messages.ERROR)
        return False
    page.message_user(request, f"Removed: {name}.", messages.SUCCESS)
    log_action(request, name, "Removed")
    add_history(request, RecurringTask, "Removed", {key: name}, DELETION)
    return True
