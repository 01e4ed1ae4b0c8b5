"""What users do to jobs: to those that are ticked in a list, to all of it, or to one job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from ..listings.job_listing import JobListing
from ..listings.job_rows import read_briefly
from ..listings.selection import count_all
from . import databases, texts
from .act_on_all import ActOnAll
from .action_forms import ActionForm, form_of
from .actions import log_action
from .base import QueueAdmin, permission
from .job_actions import JOB_ACTIONS, JobAction, taken_key
from .job_search import state_in

#: Maximum number of jobs that a confirmation counts.
COUNTED = 50_000


def _listed(name: str) -> Callable[..., bool]:
    """Return the method that says whether both the state and the user's permissions allow an action
    on a list."""

    def is_offered(page: ChangingAdmin, request: HttpRequest) -> bool:
        return name in state_in(request).actions and page.is_permitted(request, name)

    return is_offered


def _on_list(name: str, description: str) -> Callable[..., HttpResponse | None]:
    """Return the action on what is ticked in a list."""

    @admin.action(permissions=[f"{name}_listed"], description=description)
    def act(page: ChangingAdmin, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return page._apply_to_list(request, JOB_ACTIONS[name])

    return act


class ChangingAdmin(QueueAdmin):
    """A page of jobs, which can be retried, run, moved, cancelled and discarded."""

    actions = ("retry", "run_now", "move", "reschedule", "enqueue_again", "cancel", "discard")
    #: The queue of the jobs that go on with actions on long lists; ``""``: one that is served.
    background_queue = ""

    has_retry_permission = permission("retry_job")
    has_run_permission = permission("run_job")
    has_cancel_permission = permission("cancel_job")
    has_discard_permission = permission("discard_job")
    has_move_permission = permission("change_job")
    has_reschedule_permission = permission("change_job")
    has_copy_permission = permission("enqueue_job")
    has_view_arguments_permission = permission("view_arguments")

    def permitted(self, request: HttpRequest, action: JobAction, ids: Sequence[int]) -> list[int]:
        """Return those of ``ids`` on whose jobs the user may perform the action."""
        jobs = read_briefly(self.rows(request), ids)
        return [job.pk for job in jobs if self.is_permitted(request, action.name, job)]

    # --- actions on lists ---

    has_retry_listed_permission = _listed("retry")
    has_run_listed_permission = _listed("run")
    has_move_listed_permission = _listed("move")
    has_reschedule_listed_permission = _listed("reschedule")
    has_copy_listed_permission = _listed("copy")
    has_cancel_listed_permission = _listed("cancel")
    has_discard_listed_permission = _listed("discard")

    retry = _on_list("retry", "Retry selected jobs")
    run_now = _on_list("run", "Run selected jobs now")
    move = _on_list("move", "Move selected jobs to another queue or priority")
    reschedule = _on_list("reschedule", "Reschedule selected jobs")
    enqueue_again = _on_list("copy", "Enqueue selected jobs again")
    cancel = _on_list("cancel", "Cancel selected jobs")
    discard = _on_list("discard", "Discard selected jobs")

    def _apply_to_list(self, request: HttpRequest, action: JobAction) -> HttpResponse | None:
        state, chosen = state_in(request), self.selected_keys(request)
        listing = cast(JobListing, cast(Any, self.get_changelist_instance(request)).listing)
        action, form = self._filled(request, action)
        if chosen is None:
            return self._apply_to_all(request, action, listing, form)
        if form is not None or (action.warning and not self.confirmed(request)):
            count = f"{len(chosen):,} {state.name}".strip()
            question = f"{action.label} {count} jobs?{action.warning}"
            back = request.get_full_path()
            return self.confirmation(request, question, action.label, back, form=form)
        permitted = partial(self.permitted, request, action)
        history = partial(action.add_history, request.user.pk)
        ids = [int(each) for each in chosen]
        result = action.apply(listing.using, [ids], permitted, history)
        self.report(request, f"jobs {', '.join(chosen)}", action, result)
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
            return act.ask(count_all(listing, COUNTED))
        if act.is_for_background:
            act.go_on()
            return None
        permitted = partial(self.permitted, request, action)
        result = act.do(permitted, partial(action.add_history, request.user.pk))
        self.report(request, act.jobs.words, action, result, goes_on=act.can_go_on)
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

    # --- one job ---

    def _apply_to_one(self, action: JobAction, request: HttpRequest, row: Any) -> HttpResponse:
        job, page = f"job #{row.pk}", self.url(request, "change", row.pk)
        action, form = self._filled(request, action)
        if form is not None or (action.warning and not self.confirmed(request)):
            question = f"{action.label} {job}?{action.warning}"
            return self.confirmation(request, question, action.label, page, form=form)
        # The permission has been checked already.
        history = partial(action.add_history, request.user.pk)
        using = databases.requested(request)
        result = action.apply(using, [[row.pk]], lambda ids: ids, history)
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
