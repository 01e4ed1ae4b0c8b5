"""Links from the overview to the other pages, as far as a user may see these."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.utils import quote
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from ..models import Job, Pause, Process, ProcessEnd, RecurringTask, Semaphore
from ..overview import WINDOWS, Scope
from ..overview.problems import Problem
from .page_links import PageLinks


class Links(PageLinks):
    """The addresses that one user gets on one site; empty where there is no page for this user."""

    def __init__(self, page: Any, request: HttpRequest, scope: Scope) -> None:
        super().__init__(page, request)
        self._scope = scope
        self._own = f"{page.opts.app_label}_{page.opts.model_name}_changelist"

    def to_jobs(self, state: str, queue: str = "", task: str = "", error: str = "") -> str:
        """Return the address of a list of jobs."""
        scope = self._scope
        given = {"queue": queue or scope.queue, "task": task or scope.task}
        given |= {"state": state, "error": error}
        return self.to_list(Job, **{name: value for name, value in given.items() if value})

    def to_errors(self, **filters: str) -> str:
        """Return the address of the failed jobs by their causes."""
        is_there = hasattr(self._site._registry.get(Job), "errors_view") and self._may_see(Job)
        return self._address(Job, "errors", (), filters) if is_there else ""

    def to_group(self, fingerprint: str) -> str:
        """Return the address of the jobs of an error group."""
        return self.to_jobs("failed", error=fingerprint) if self.to_errors() else ""

    @property
    def may_retry(self) -> bool:
        """Whether the user may retry failed jobs."""
        page = self._site._registry.get(Job)
        return bool(getattr(page, "is_permitted", lambda *_: False)(self._request, "retry"))

    def to_button(self, verb: str, queue: str) -> str:
        """Return the address that pauses or resumes a queue, if the user may do so."""
        page = self._site._registry.get(Pause)
        is_permitted = getattr(page, "is_permitted", lambda *_: False)
        if not is_permitted(self._request, "pause", Pause(queue_name=queue)):
            return ""
        return self._address(Pause, verb, (quote(queue),), {})

    def to_problem(self, problem: Problem) -> tuple[str, str]:
        """Return the address of the page that helps, and what it is called."""
        if not problem.page:
            return "", ""
        if problem.page == "jobs":
            return self.to_list(Job, **problem.filters), "These jobs"
        if problem.page == "errors":
            return self.to_errors(), "Their errors"
        if problem.page == "job":
            return self.to_page(Job, problem.key), f"Job #{problem.key}"
        if problem.page == "queue":
            return self.to_page(Pause, problem.key), "The queue"
        model, label = LISTS[problem.page]
        if problem.page == "ended" and not self._may_see(model):
            model, label = LISTS["processes"]
        return self.to_list(model), label

    def here(self, **changes: str) -> str:
        """Return the address of this page, with some parameters changed."""
        given = {**parameters(self._scope), **changes}
        if given["window"] == next(iter(WINDOWS)):
            del given["window"]
        return self._with_query(reverse(f"admin:{self._own}", current_app=self._site.name), given)


def parameters(scope: Scope) -> dict[str, str]:
    """Return what the address of a page has of its scope, beside the database."""
    return {"window": scope.window.name, "queue": scope.queue, "task": scope.task}


def back_to(page: Any, request: HttpRequest) -> str:
    """Return the address of the overview that a button of it was on, of the scope it had then."""
    names = parameters(Scope(""))
    given = {name: request.POST[name] for name in names if request.POST.get(name)}
    address = str(page.url(request, "changelist"))
    return f"{address}{'&' if '?' in address else '?'}{urlencode(given)}" if given else address


LISTS: dict[str, tuple[type[Model], str]] = {
    "processes": (Process, "Processes"),
    "ended": (ProcessEnd, "Ended processes"),
    "semaphores": (Semaphore, "Semaphores"),
    "schedules": (RecurringTask, "Recurring tasks"),
}
