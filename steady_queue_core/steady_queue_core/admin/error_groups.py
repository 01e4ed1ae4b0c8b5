"""The page of error groups: failures with the same cause, to be shown or retried together."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.contrib.admin import helpers
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ..dialects import is_storable
from ..fingerprint import is_fingerprint
from ..listings.counts import CAP, BoundedCount
from ..listings.error_groups import ErrorGroup, error_groups
from . import databases, texts
from .base import QueueAdmin
from .rendering import STYLE

TEMPLATE = "admin/steady_queue/error_groups.html"
#: Groups that are shown, and characters of an error.
MOST_GROUPS, MOST_SHOWN = 50, 300
#: The filters that the page heeds.
FILTERS = ("queue", "task")
#: What the list of jobs is told for an action on all that it selects: Django wants a tick, too.
RETRY_ALL = {
    "action": "retry", "index": "0", "select_across": "1", helpers.ACTION_CHECKBOX_NAME: "1",
}  # fmt: skip


class Row(NamedTuple):
    """A group as it is shown."""

    error: str
    task: SafeString
    jobs: BoundedCount
    first: str
    last: str
    #: The list of its jobs.
    url: str


def error_groups_page(page: QueueAdmin, request: HttpRequest, *, may_retry: bool) -> HttpResponse:
    """Return the groups of the failed jobs that the user may see."""
    given, visible = filters_of(request), page.visible_jobs(request)
    found = error_groups(databases.requested(request), MOST_GROUPS, given, visible)
    context = {
        **page.admin_site.each_context(request),
        "title": "Error groups",
        "original": "Error groups",
        "opts": page.opts,
        "has_view_permission": True,
        "media": STYLE,
        "filters": [(name, texts.name(value)) for name, value in given.items()],
        "rows": [_row(page, request, group, given) for group in found.groups],
        "found": found,
        "most": f"{CAP:,}",
        "retry": RETRY_ALL if may_retry else None,
        "all_url": page.url(request, "errors"),
        "jobs_url": page.jobs_url(request, state="failed", **given),
    }
    request.current_app = page.admin_site.name
    return TemplateResponse(request, TEMPLATE, context)


def groups_url(page: QueueAdmin, request: HttpRequest) -> str:
    """Return the URL of the page, with the filters of a list of jobs."""
    return page.url(request, "errors", **filters_of(request))


def filters_of(request: HttpRequest) -> dict[str, str]:
    """Return the filters of a request that the page heeds. Raises ``Http404`` for what no name
    is."""
    given = {name: request.GET[name] for name in FILTERS if request.GET.get(name)}
    if not all(map(is_storable, given.values())):
        raise Http404("There is no queue or task with such a name.")
    return given


def group_link(page: QueueAdmin, request: HttpRequest, job: Any) -> str:
    """Return a link to the group of a failed job; nothing for others."""
    fingerprint = str(getattr(getattr(job, "failedexecution", None), "fingerprint", None))
    if not is_fingerprint(fingerprint):
        return ""
    url = page.jobs_url(request, state="failed", error=fingerprint)
    return format_html('<a href="{}">{}</a>', url, fingerprint)


def _row(page: QueueAdmin, request: HttpRequest, group: ErrorGroup, given: dict[str, str]) -> Row:
    return Row(
        texts.clean(group.error, MOST_SHOWN),
        texts.named(group.task_path),
        group.count,
        texts.moment(group.first),
        texts.moment(group.last),
        page.jobs_url(request, state="failed", error=group.fingerprint, **given),
    )
