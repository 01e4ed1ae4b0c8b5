"""Links from one page to others, as far as a user may see these."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote as percent_encoded

from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import quote
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ..models import Job, JobBatch, Pause, Process, ProcessEnd, RecurringTask, Semaphore
from ..overview import WINDOWS, Scope
from ..overview.problems import Problem
from . import databases, texts

#: Stands for the key of a row in an address.
PLACE = "steady-queue-key"
#: Characters that an address keeps, as in those of Django.
KEPT = "/~:@!$&'()*+,;="


class LinkingAdmin(ModelAdmin):
    """A page that knows the URLs of the others, for the database of a request."""

    def url(self, request: HttpRequest, name: str, *arguments: Any, **given: str) -> str:
        """Return the URL of one of the model's pages, for the database of this request."""
        return self._url(request, str(self.opts.model_name), name, *arguments, **given)

    def jobs_url(self, request: HttpRequest, **given: str) -> str:
        """Return the URL of the list of jobs with these filters."""
        return self._url(request, "job", "changelist", **given)

    def job_url(self, request: HttpRequest, job_id: int) -> str:
        """Return the URL of the page of a job."""
        return self._url(request, "job", "change", job_id)

    def job_link(self, request: HttpRequest, job_id: int) -> SafeString:
        """Return a link to the page of a job."""
        return format_html('<a href="{}">#{}</a>', self.job_url(request, job_id), job_id)

    def batch_url(self, request: HttpRequest, batch_id: int) -> str | None:
        """Return the URL of the page of a batch, if the site has one and the user may see it."""
        page: Any = self.admin_site._registry.get(JobBatch)
        is_there = page is not None and page.has_view_permission(request)
        return self._url(request, "jobbatch", "change", batch_id) if is_there else None

    def batch_link(self, request: HttpRequest, batch_id: int, kind: str = "") -> SafeString:
        """Return a link to the page of a batch, or its number alone."""
        url, number = self.batch_url(request, batch_id), f"{texts.name(kind)} #{batch_id}".strip()
        if url is None:
            return format_html("{}", number)
        return format_html('<a href="{}">{}</a>', url, number)

    def _url(
        self, request: HttpRequest, model: str, page: str, *arguments: Any, **given: str
    ) -> str:
        name = f"admin:{self.opts.app_label}_{model}_{page}"
        address = reverse(name, args=arguments, current_app=self.admin_site.name)
        return databases.with_query(address, given | databases.parameters(request))


class PageLinks:
    """The addresses that one user gets on one site; empty where there is no page for this user."""

    def __init__(self, page: Any, request: HttpRequest) -> None:
        self._site, self._request = page.admin_site, request
        self._database = databases.parameters(request)
        #: What one page asks for hundreds of times.
        self._seen: dict[type[Model], bool] = {}
        self._patterns: dict[tuple[type[Model], str, int], str] = {}

    def link(self, address: str, words: object) -> str:
        """Return words that lead to an address, or the words alone if it is empty."""
        text = texts.clean(words)
        return format_html('<a href="{}">{}</a>', address, text) if address else text

    def named(self, address: str, value: object) -> str:
        """Return a name for a list that leads to an address, or the name alone if it is empty."""
        name = texts.named(value)
        return format_html('<a href="{}">{}</a>', address, name) if address else name

    def to_list(self, model: type[Model], **filters: str) -> str:
        """Return the address of a list."""
        return self._address(model, "changelist", (), filters) if self._may_see(model) else ""

    def to_page(self, model: type[Model], key: str) -> str:
        """Return the address of the page of a row."""
        is_there = key != "" and self._may_see(model)
        return self._address(model, "change", (quote(key),), {}) if is_there else ""

    def _may_see(self, model: type[Model]) -> bool:
        if model not in self._seen:
            page = self._site._registry.get(model)
            self._seen[model] = page is not None and page.has_view_permission(self._request)
        return self._seen[model]

    def _address(
        self, model: type[Model], page: str, arguments: tuple[str, ...], given: dict[str, str]
    ) -> str:
        key = model, page, len(arguments)
        if key not in self._patterns:
            name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
            places = [PLACE] * len(arguments)
            self._patterns[key] = reverse(name, args=places, current_app=self._site.name)
        address = self._patterns[key]
        for each in arguments:
            address = address.replace(PLACE, percent_encoded(each, safe=KEPT), 1)
        return self._with_query(address, given)

    def _with_query(self, address: str, given: dict[str, str]) -> str:
        return databases.with_query(address, given | self._database)


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
    return str(page.url(request, "changelist", **given))


LISTS: dict[str, tuple[type[Model], str]] = {
    "processes": (Process, "Processes"),
    "ended": (ProcessEnd, "Ended processes"),
    "semaphores": (Semaphore, "Semaphores"),
    "schedules": (RecurringTask, "Recurring tasks"),
}
