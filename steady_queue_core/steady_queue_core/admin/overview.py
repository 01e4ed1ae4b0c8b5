"""Overview: one page about the whole queue, which refreshes itself."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.cache import get_conditional_response
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ..configuration.queues import LONGEST_NAME
from ..dialects import is_storable
from ..listings.visibility import is_unrestricted
from ..models import Job, Pause, Process, RecurringTask
from ..overview import WINDOWS, Overview, Scope
from ..tasks.registry import registered_tasks
from . import databases, overview_tables, texts
from .base import QueueAdmin
from .error_groups import RETRY_ALL
from .filters import MOST_CHOICES, queues_of_tasks
from .overview_charts import charts
from .page_links import Links, parameters
from .rendering import STYLE

SELECTED = SafeString(" selected")
#: The pages whose rows the numbers are of.
COUNTED: tuple[type[Model], ...] = (Job, Pause, Process, RecurringTask)


class OverviewAdmin(QueueAdmin):
    """The page. Its numbers are of all jobs, so that it is only for users who may see all."""

    page_template = "admin/steady_queue/overview.html"
    live_template = "admin/steady_queue/overview_live.html"

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_view_permission(request, obj) and self._sees_everything(request)

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_changelist"
        return [path("", self.admin_site.admin_view(self.changelist_view), name=name)]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET"])
        is_fragment = request.GET.get("fragment") == "1"
        overview = Overview.of(
            _scope(request),
            with_schedules=not is_fragment,
            looks_closer=request.GET.get("closer") == "1",
        )
        if not self._sees_queues(request, overview.lengths.queues):
            raise PermissionDenied
        links = Links(self, request, overview.scope)
        context = _live(overview, links)
        if is_fragment:
            return self._fragment(request, context)
        return self._page(request, overview, links, {**context, **(extra_context or {})})

    def _fragment(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        """Return what refreshes, unless the browser has it already."""
        response = HttpResponse(render_to_string(self.live_template, context, request))
        etag = f'"{sha256(response.content).hexdigest()[:32]}"'
        response.headers["ETag"] = etag
        return get_conditional_response(request, etag=etag, response=response) or response

    def _page(
        self, request: HttpRequest, overview: Overview, links: Links, live: dict[str, Any]
    ) -> HttpResponse:
        scope = overview.scope
        context = {
            **self.admin_site.each_context(request),
            **live,
            "title": "Overview",
            "opts": self.opts,
            "media": STYLE,
            "scope": scope,
            "present": texts.moment(overview.moment.present),
            "schedules": overview_tables.schedules(overview, links),
            "windows": [
                (each.label, "" if each is scope.window else links.here(window=name))
                for name, each in WINDOWS.items()
            ],
            "queue_choices": _choices({*overview.lengths.queues, *queues_of_tasks()}, scope.queue),
            "task_choices": _choices(
                overview.history.known_tasks | {task.module_path for task in registered_tasks()},
                scope.task,
            ),
            "database_choices": databases.queue_databases(),
            "all_url": links.here(queue="", task=""),
            "parameters": parameters(scope),
            "fragment_url": links.here(fragment="1"),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, self.page_template, context)

    # --- who may see it ---

    def _sees_everything(self, request: HttpRequest) -> bool:
        return all(is_unrestricted(self.rows(request, model)) for model in COUNTED) and (
            self._sees_queues(request, queues_of_tasks())
        )

    def _sees_queues(self, request: HttpRequest, names: Iterable[str]) -> bool:
        """Whether the site's page of queues shows all of these to the user."""
        page: Any = self.admin_site._registry.get(Pause)
        wanted = [*names]
        if page is None or not hasattr(page, "get_queue_names"):
            return True
        return {*wanted} <= {*page.get_queue_names(request, wanted)}


def _scope(request: HttpRequest) -> Scope:
    given = request.GET
    return Scope(
        databases.requested(request),
        WINDOWS.get(given.get("window", ""), next(iter(WINDOWS.values()))),
        _name(given.get("queue", "")),
        _name(given.get("task", "")),
    )


def _name(text: str) -> str:
    return text if is_storable(text) and len(text) <= LONGEST_NAME else ""


def _live(overview: Overview, links: Links) -> dict[str, Any]:
    """Return what both the page and the fragment show."""
    scope = overview.scope
    return {
        "is_read": overview.is_read,
        "closer_url": links.here(closer="1"),
        "problems": list(overview_tables.problems(overview, links)),
        "numbers": list(overview_tables.numbers(overview, links)),
        "charts": charts(overview),
        "queues": overview_tables.queues(overview, links),
        "queues_left": overview.queues_left,
        "queues_unseen": overview.queues_unseen,
        "queues_url": links.to_list(Pause),
        "tasks": overview_tables.tasks(overview, links),
        "tasks_left": overview.tasks_left,
        "longest": overview_tables.longest(overview, links),
        "errors": overview_tables.errors(overview, links),
        "has_failed": overview.history.total.failed > 0,
        "errors_left": overview.causes.has_more,
        "errors_url": links.to_errors(queue=scope.queue, task=scope.task),
        "retry": RETRY_ALL if links.may_retry else None,
        "window": scope.window.label,
        "is_cut": overview.history.is_cut,
    }


def _choices(names: Iterable[str], chosen: str) -> SafeString:
    """Return the options for names, sorted; the chosen one is among them."""
    sorted_names = sorted({*names} - {"", chosen})[:MOST_CHOICES]
    options = sorted({*sorted_names, chosen} - {""})
    return format_html_join("", "{}", ((_option(each, each == chosen),) for each in options))


def _option(name: str, is_chosen: bool) -> SafeString:
    shown = texts.name(name)
    # The words of an option are its value, but for the spaces around and between them.
    value = "" if shown == " ".join(name.split()) == name else format_html(' value="{}"', name)
    return format_html("<option{}{}>{}", value, SELECTED if is_chosen else "", shown)
