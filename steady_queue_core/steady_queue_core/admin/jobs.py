"""Jobs: lists by state, the page of one job, and actions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern

from ..listings.counts import BoundedCount
from ..listings.job_listing import JobListing
from ..listings.job_rows import RELATED, read_briefly, state_of
from ..listings.states import FAILED, STATES
from ..models.job import parse_job_id
from . import filters
from .batch_page import batch_sections
from .change_list import KeysetChangeList
from .error_groups import error_groups_page, group_link, groups_url
from .export import export, export_links
from .job_actions import JOB_ACTIONS
from .job_attempts import Processes
from .job_changes import ChangingAdmin
from .job_columns import COLUMNS_BY_STATE
from .job_links import JobLinks
from .job_page import sections_of
from .job_search import ARGUMENTS, SINCE, TIMED, UNTIL, listing_in, state_in
from .page_links import PageLinks
from .recent_acts import recent_acts_page

#: The methods of a page that say who sees what, and may do what. A worker has no request for them.
DECIDING = (
    "get_queryset", "rows", "visible_jobs", "permitted", "is_permitted", "may",
    "has_view_permission",
)  # fmt: skip


class JobChangeList(KeysetChangeList):
    """The jobs of a state, with tabs for the other states."""

    listing: JobListing

    @property
    def tabs(self) -> list[tuple[str, BoundedCount, str | None]]:
        """Label, count and URL of each state; no URL for the one that is shown."""
        return [
            (
                state.label,
                self.listing.counts[name],
                None
                if state is self.listing.state
                # An error group has failed jobs alone.
                else self.get_query_string(
                    {"state": name or None}, ["error", *(() if name in TIMED else (SINCE, UNTIL))]
                ),
            )
            for name, state in STATES.items()
        ]

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        #: URL of the groups of these jobs; empty unless they have failed.
        is_failed = self.listing.state is FAILED
        self.groups_url = groups_url(self.model_admin, request) if is_failed else ""
        #: The field of the form that searches arguments, for those who may see some.
        if self.model_admin.has_view_arguments_permission(request):
            self.arguments_field = ARGUMENTS
            self.arguments_text = self.params.get(ARGUMENTS, "")


class JobAdmin(ChangingAdmin):
    """Jobs, which can be retried, run, cancelled and discarded, but not edited."""

    list_filter = (
        filters.StateFilter, filters.DatabaseFilter, filters.SinceFilter, filters.UntilFilter,
        filters.QueueFilter, filters.TaskFilter, filters.KeyFilter, filters.ErrorFilter,
        filters.ArgumentsFilter,
    )  # fmt: skip
    search_fields = ("id", "task_path")
    search_help_text = (
        "A job id, or a part of a task's path; in the list of failed jobs, also of the error."
    )

    # --- lists ---

    def get_changelist(self, request: HttpRequest, **named: Any) -> type[KeysetChangeList]:
        return JobChangeList

    def get_list_display(self, request: HttpRequest) -> Any:
        return COLUMNS_BY_STATE[state_in(request).name]

    def list_title(self, request: HttpRequest) -> str:
        state = state_in(request)
        return f"{state.label} jobs" if state.name else "Jobs"

    def listing(self, request: HttpRequest, search: str) -> JobListing:
        return listing_in(self, request, search)

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        """Find a job by its id, for autocompletion. No index serves other searches."""
        job_id = parse_job_id(search_term.strip())
        found = queryset.filter(pk=job_id) if job_id is not None else queryset.none()
        return found.order_by("pk"), False

    def annotate_rows(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        pages = PageLinks(self, request)
        for row in rows:
            row.pages = pages
            # Read with those that wait for other members.
            member = row._state.fields_cache.get("membership")
            row.batch_link = "" if member is None else self.batch_link(request, member.batch_id)
        return rows

    def errors_view(self, request: HttpRequest) -> HttpResponse:
        """Show the failed jobs by error group."""
        may_retry = self.is_permitted(request, "retry")
        return error_groups_page(self, request, may_retry=may_retry)

    def see_also(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [*export_links(self, request), ("Recent actions", self.url(request, "acts"))]

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Send the jobs of a list."""
        try:
            return export(self, request)
        except IncorrectLookupParameters:
            raise Http404("There are no jobs with such a name.") from None

    def acts_view(self, request: HttpRequest) -> HttpResponse:
        """Show what users have done lately."""
        return recent_acts_page(self, request)

    # --- permissions ---

    def decides_otherwise(self, permissions: Sequence[str]) -> bool:
        """Whether a subclass changes who sees what, or who has one of these permissions."""
        names = (*DECIDING, *(f"has_{each}_permission" for each in permissions))
        return any(getattr(type(self), name) is not getattr(JobAdmin, name) for name in names)

    # --- the page of one job ---

    def get_urls(self) -> list[URLPattern]:
        own = [
            self.action_path(name, name, partial(self._apply_to_one, action))
            for name, action in JOB_ACTIONS.items()
        ]
        lists = [
            self.list_path("errors", self.errors_view, "GET", "HEAD"),
            self.list_path("export", self.export_view, "GET"),
            self.list_path("acts", self.acts_view, "GET", "HEAD"),
        ]
        return [*lists, *own, *super().get_urls()]

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        rows = (
            self.rows(request)
            .select_related(None)
            .select_related(*RELATED, "retention", "checkpoint")
        )
        job_id = parse_job_id(object_id)
        return None if job_id is None else rows.filter(pk=job_id).first()

    def get_action_object(self, request: HttpRequest, object_id: str) -> Any:
        job_id = parse_job_id(object_id)
        if job_id is None:
            return None
        return next(iter(read_briefly(self.rows(request), [job_id])), None)

    def detail(self, request: HttpRequest, row: Any) -> HttpResponse:
        job, state = row, state_of(row)
        with_arguments = self.has_view_arguments_permission(request, job)
        links = JobLinks(self, request, job)
        processes = Processes(job, links.pages)
        group = group_link(self, request, job)
        sections = sections_of(job, state, links, processes, group, with_arguments=with_arguments)
        sections[1:1] = batch_sections(self, request, job)
        buttons = [
            (action.label, self.url(request, name, job.pk))
            for name, action in JOB_ACTIONS.items()
            if name in state.actions and self.is_permitted(request, name, job)
        ]
        history = self.url(request, "history", job.pk)
        return self.render_detail(request, job, f"Job #{job.pk}", sections, buttons, history)
