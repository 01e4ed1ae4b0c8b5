"""An action on all jobs of a list, in the request of the user and then in the background."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from ..listings.counts import BoundedCount
from ..listings.job_listing import JobListing
from . import actions, background
from .action_forms import ActionForm
from .actions import BatchResult, log_action
from .background import Place
from .job_actions import AddHistory, JobAction, Permitted
from .job_lists import JobList


class ActOnAll:
    """An action on all jobs of a list that are there when it is made."""

    def __init__(
        self,
        page: Any,
        request: HttpRequest,
        action: JobAction,
        listing: JobListing,
        form: ActionForm | None = None,
    ) -> None:
        self.page, self.request, self.action, self.listing = page, request, action, listing
        self.form = form
        #: Up to where it is done.
        self.position = ""

    @cached_property
    def jobs(self) -> JobList:
        return JobList.of(self.listing)

    @cached_property
    def place(self) -> Place | None:
        """Where it can go on; ``None``: only the page can say what this user may do."""
        names = [self.action.name, *(["view_arguments"] if self.listing.arguments else [])]
        if not self.listing.visible.is_unrestricted or self.page.decides_otherwise(names):
            return None
        return background.place_in(self.listing.using, self.page.background_queue)

    @property
    def can_go_on(self) -> bool:
        return self.place is not None

    @property
    def is_for_background(self) -> bool:
        """Whether the user wants all of it to be done there."""
        return self.request.POST.get("background") == "yes" and self.can_go_on

    def ask(self, count: BoundedCount) -> HttpResponse:
        """Return the question whether to do it."""
        state, action = self.listing.state.name, self.action
        many = f"{count.text} {state}".strip()
        is_long = count.number > background.MANY or not count.exact
        notes = list(self._notes()) if is_long else []
        question: HttpResponse = self.page.confirmation(
            self.request,
            f"{action.label} {many} jobs?{action.warning}",
            action.label,
            self.request.get_full_path(),
            notes,
            form=self.form,
            in_background=is_long and self.can_go_on,
        )
        return question

    def _notes(self) -> Iterator[str]:
        if self.place is not None:
            yield (
                f"What is not done after {actions.TIME_LIMIT:g} seconds goes on in the background, "
                "as a job."
            )
            if self.place.warning:
                yield self.place.warning

    def do(self, permitted: Permitted, add_history: AddHistory) -> BatchResult:
        """Do it, as far as a request may take."""
        still = self.jobs.still
        return self.action.apply(
            self.listing.using, self._parts(), lambda ids: permitted(still(ids)), add_history
        )

    def _parts(self) -> Iterator[list[int]]:
        for ids, after in self.jobs.among(self.listing, self.action).parts(
            self.position, actions.BATCH
        ):
            yield ids
            # The next part is asked for when this one is done.
            self.position = after

    def go_on(self) -> None:
        """Have a job do the rest, and say so."""
        assert self.place is not None
        job_id = background.enqueue(self.place, self.action, self.jobs, self.request, self.position)
        what = f"{self.action.label}{self.action.told}: {self.jobs.words}"
        link = self.page.job_link(self.request, job_id)
        told = format_html("This goes on in the background, as job {}.", link)
        self.page.message_user(self.request, told, messages.INFO)
        if self.place.warning:
            self.page.message_user(self.request, self.place.warning, messages.WARNING)
        log_action(self.request, what, f"Goes on in the background, as job #{job_id}")
