"""Jobs: lists by state, the page of one job, and actions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path

from ..listings.counts import BoundedCount
from ..listings.job_listing import LOOKED_AT, JobListing
from ..listings.job_rows import RELATED, read_briefly, state_of
from ..listings.states import FAILED, STATES
from ..models import Job
from ..models.job import parse_job_id
from . import databases, texts
from .act_on_all import ActOnAll
from .action_forms import ActionForm, form_of
from .actions import BatchResult, add_history, log_action
from .base import QueueAdmin
from .change_list import KeysetChangeList
from .error_groups import error_groups_page, group_link, groups_url
from .export import export, export_links
from .filters import (
    ArgumentsFilter,
    DatabaseFilter,
    ErrorFilter,
    KeyFilter,
    QueueFilter,
    SinceFilter,
    StateFilter,
    TaskFilter,
    UntilFilter,
)
from .job_actions import JOB_ACTIONS, JobAction, taken_key
from .job_attempts import Processes
from .job_batch import batch_sections
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
#: Maximum number of jobs that a confirmation counts.
COUNTED = 50_000


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


class JobAdmin(QueueAdmin):
    """Jobs, which can be retried, run, cancelled and discarded, but not edited."""

    list_filter = (
        StateFilter, DatabaseFilter, SinceFilter, UntilFilter, QueueFilter, TaskFilter, KeyFilter,
        ErrorFilter, ArgumentsFilter,
    )  # fmt: skip
    search_fields = ("id", "task_path")
    search_help_text = (
        "A job id, or a part of a task's path; in the list of failed jobs, also of the error."
    )
    actions = ("retry", "run_now", "move", "reschedule", "enqueue_again", "cancel", "discard")
    #: The queue of the jobs that go on with actions on long lists; ``""``: one that is served.
    background_queue = ""

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
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET"])
        may_retry = self.is_permitted(request, "retry")
        return error_groups_page(self, request, may_retry=may_retry)

    def see_also(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [*export_links(self, request), ("Recent actions", self.url(request, "acts"))]

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Send the jobs of a list."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "GET":
            return HttpResponseNotAllowed(["GET"])
        try:
            return export(self, request)
        except IncorrectLookupParameters:
            raise Http404("There are no jobs with such a name.") from None

    def acts_view(self, request: HttpRequest) -> HttpResponse:
        """Show what users have done lately."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET"])
        return recent_acts_page(self, request)

    # --- permissions ---

    def has_retry_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "retry_job")

    def has_run_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "run_job")

    def has_cancel_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "cancel_job")

    def has_discard_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "discard_job")

    def has_move_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "change_job")

    def has_reschedule_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "change_job")

    def has_copy_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "enqueue_job")

    def has_view_arguments_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "view_arguments")

    def decides_otherwise(self, permissions: Sequence[str]) -> bool:
        """Whether a subclass changes who sees what, or who has one of these permissions."""
        names = (*DECIDING, *(f"has_{each}_permission" for each in permissions))
        return any(getattr(type(self), name) is not getattr(JobAdmin, name) for name in names)

    def permitted(self, request: HttpRequest, action: JobAction, ids: Sequence[int]) -> list[int]:
        """Return those of ``ids`` on whose jobs the user may perform the action."""
        jobs = read_briefly(self.rows(request), ids)
        return [job.pk for job in jobs if self.is_permitted(request, action.name, job)]

    # --- actions on lists, offered if both the state and the user's permissions allow them ---

    def has_retry_listed_permission(self, request: HttpRequest) -> bool:
        return self._may_here(request, JOB_ACTIONS["retry"])

    def has_run_listed_permission(self, request: HttpRequest) -> bool:
        return self._may_here(request, JOB_ACTIONS["run"])

    def has_cancel_listed_permission(self, request: HttpRequest) -> bool:
        return self._may_here(request, JOB_ACTIONS["cancel"])

    def has_discard_listed_permission(self, request: HttpRequest) -> bool:
        return self._may_here(request, JOB_ACTIONS["discard"])

    def has_move_listed_permission(self, request: HttpRequest) -> bool:
        return self._may_here(request, JOB_ACTIONS["move"])

    def has_reschedule_listed_permission(self, request: HttpRequest) -> bool:
        return self._may_here(request, JOB_ACTIONS["reschedule"])

    def has_copy_listed_permission(self, request: HttpRequest) -> bool:
        return self._may_here(request, JOB_ACTIONS["copy"])

    @admin.action(permissions=["retry_listed"], description="Retry selected jobs")
    def retry(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._apply_to_list(request, JOB_ACTIONS["retry"])

    @admin.action(permissions=["run_listed"], description="Run selected jobs now")
    def run_now(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._apply_to_list(request, JOB_ACTIONS["run"])

    @admin.action(
        permissions=["move_listed"], description="Move selected jobs to another queue or priority"
    )
    def move(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._apply_to_list(request, JOB_ACTIONS["move"])

    @admin.action(permissions=["reschedule_listed"], description="Reschedule selected jobs")
    def reschedule(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._apply_to_list(request, JOB_ACTIONS["reschedule"])

    @admin.action(permissions=["copy_listed"], description="Enqueue selected jobs again")
    def enqueue_again(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._apply_to_list(request, JOB_ACTIONS["copy"])

    @admin.action(permissions=["cancel_listed"], description="Cancel selected jobs")
    def cancel(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._apply_to_list(request, JOB_ACTIONS["cancel"])

    @admin.action(permissions=["discard_listed"], description="Discard selected jobs")
    def discard(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._apply_to_list(request, JOB_ACTIONS["discard"])

    def _may_here(self, request: HttpRequest, action: JobAction) -> bool:
        return action.name in state_in(request).actions and self.is_permitted(request, action.name)

    def _apply_to_list(self, request: HttpRequest, action: JobAction) -> HttpResponse | None:
        state, chosen = state_in(request), self.selected_keys(request)
        listing = cast(JobChangeList, self.get_changelist_instance(request)).listing
        action, form = self._filled(request, action)
        if chosen is None:
            return self._apply_to_all(request, action, listing, form)
        if form is not None or (action.warning and not self.confirmed(request)):
            count = f"{len(chosen):,} {state.name}".strip()
            question = f"{action.label} {count} jobs?{action.warning}"
            back = request.get_full_path()
            return self.confirmation(request, question, action.label, back, form=form)
        permitted = partial(self.permitted, request, action)
        history = partial(self._add_history, request, action)
        ids = [int(each) for each in chosen]
        result = action.apply_to_ids(listing.using, ids, permitted, history)
        self._report(request, action, result)
        log_action(request, f"jobs {', '.join(chosen)}", _summary(action, result))
        return None

    def _apply_to_all(
        self,
        request: HttpRequest,
        action: JobAction,
        listing: JobListing,
        form: ActionForm | None,
    ) -> HttpResponse | None:
        act = ActOnAll(self, request, action, listing, form)
        if form is not None or not self.confirmed(request):
            return act.ask(_count(listing))
        if act.is_for_background:
            act.go_on()
            return None
        permitted = partial(self.permitted, request, action)
        result = act.do(permitted, partial(self._add_history, request, action))
        self._report(request, action, result, goes_on=act.can_go_on)
        log_action(request, act.jobs.words, _summary(action, result))
        if result.stopped and act.can_go_on:
            act.go_on()
        return None

    def _filled(
        self, request: HttpRequest, action: JobAction
    ) -> tuple[JobAction, ActionForm | None]:
        """Return the action with what the user has entered, or the form that is still to be filled
        in."""
        is_filled = self.confirmed(request)
        form = form_of(action.form, request, databases.requested(request), is_filled=is_filled)
        if form is not None and is_filled and form.is_valid():
            return action.given(form.chosen), None
        return action, form

    def _add_history(self, request: HttpRequest, action: JobAction, ids: Sequence[int]) -> None:
        names = {each: f"#{each}" for each in ids}
        add_history(request, Job, action.past + action.told, names, action.flag)

    def _report(
        self, request: HttpRequest, action: JobAction, result: BatchResult, *, goes_on: bool = False
    ) -> None:
        self.message_user(request, f"{_summary(action, result)}.", messages.SUCCESS)
        if result.changed < result.requested:
            skipped = result.requested - result.changed
            left = f"{skipped:,} {action.left_alone} and were left alone."
            self.message_user(request, left, messages.WARNING)
        if result.stopped and not goes_on:
            self.message_user(request, result.hint, messages.WARNING)

    # --- the page of one job ---

    def get_urls(self) -> list[URLPattern]:
        own = [
            self.action_path(name, name, partial(self._apply_to_one, action))
            for name, action in JOB_ACTIONS.items()
        ]
        views = {"errors": self.errors_view, "export": self.export_view, "acts": self.acts_view}
        lists = [
            path(
                f"{name}/",
                self.admin_site.admin_view(view),
                name=f"{self.opts.app_label}_{self.opts.model_name}_{name}",
            )
            for name, view in views.items()
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

    def _apply_to_one(self, action: JobAction, request: HttpRequest, row: Any) -> HttpResponse:
        job, page = f"job #{row.pk}", self.url(request, "change", row.pk)
        action, form = self._filled(request, action)
        if form is not None or (action.warning and not self.confirmed(request)):
            question = f"{action.label} {job}?{action.warning}"
            return self.confirmation(request, question, action.label, page, form=form)
        # The permission has been checked already.
        history = partial(self._add_history, request, action)
        using = databases.requested(request)
        result = action.apply_to_ids(using, [row.pk], lambda ids: ids, history)
        if result.stopped:
            self.message_user(request, f"{action.label} {job}: {result.stopped}.", messages.ERROR)
        elif result.changed:
            done = f"{action.past} {job}{action.told}."
            self.message_user(request, done, messages.SUCCESS)
            log_action(request, f"#{row.pk}", action.past + action.told)
        else:
            taken = taken_key(using, row.pk, action.name)
            reason = texts.clean(taken or f"job #{row.pk} {action.refused}")
            refusal = f"{reason[0].upper()}{reason[1:]}: it cannot be {action.past.lower()} now."
            self.message_user(request, refusal, messages.WARNING)
        if action.destroys and result.changed:
            return HttpResponseRedirect(self.url(request, "changelist"))
        return HttpResponseRedirect(page)


def _summary(action: JobAction, result: BatchResult) -> str:
    plural = "" if result.changed == 1 else "s"
    return f"{action.past} {result.changed:,} job{plural}{action.told}"


def _count(listing: JobListing) -> BoundedCount:
    """Count the jobs of a list, examining a bounded number of them if no index serves its
    filters."""
    known = listing.count()
    if known is not None:
        return known
    found = examined = 0
    for batch in listing.batches():
        found += len(batch)
        examined += LOOKED_AT
        if examined >= COUNTED:
            return BoundedCount(found, exact=False)
    return BoundedCount(found)
