"""Links from the page of a job to its task, queue, keys, and the jobs that have these."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils.html import format_html, format_html_join

from ..features.shown_row import Parts, To
from ..models import Job, Pause, Rate, Semaphore
from ..models.semaphore import Permit
from . import texts
from .base import QueueAdmin
from .page_links import PageLinks

#: Number of jobs shown that have a permit.
MOST_HOLDERS = 3
#: The relations of states in which a job takes part in its concurrency limit.
LIMITED = ("readyexecution", "claimedexecution", "blockedexecution")


class JobLinks:
    """The links of one job, as far as the user may follow them."""

    def __init__(self, page: QueueAdmin, request: HttpRequest, job: Any) -> None:
        self._page, self._request, self._job = page, request, job
        self.pages = PageLinks(page, request)

    @property
    def task(self) -> str:
        path = self._job.task_path
        return self.pages.link(self.pages.to_list(Job, task=path), path)

    @property
    def queue(self) -> str:
        name = self._job.queue_name
        return self.pages.link(self.pages.to_page(Pause, name), name)

    @property
    def concurrency_key(self) -> str:
        """The key of the job's limit; its page is there as long as permits are in use."""
        key = self._job.concurrency_key
        if not key:
            return ""
        is_limited = any(getattr(self._job, each, None) is not None for each in LIMITED)
        return self.pages.link(self.pages.to_page(Semaphore, key) if is_limited else "", key)

    @property
    def holders(self) -> str:
        """The jobs that have the permits which a blocked job waits for."""
        blocked = getattr(self._job, "blockedexecution", None)
        if blocked is None:
            return ""
        permits = Permit.objects.using(self._job._state.db).filter(key=blocked.concurrency_key)
        seen = self._page.visible_jobs(self._request).restrict(permits).order_by("job_id")
        found = list(seen.values_list("job_id", flat=True)[: MOST_HOLDERS + 1])
        shown = format_html_join(", ", "{}", [(self.job(each),) for each in found[:MOST_HOLDERS]])
        return format_html("{} and others", shown) if len(found) > MOST_HOLDERS else shown

    def shown(self, parts: Parts) -> str:
        """Return what a feature shows of the job, with its links."""
        return format_html_join("", "{}", [(self._part(each),) for each in parts])

    def _part(self, part: str | datetime | To) -> str:
        if isinstance(part, datetime):
            return texts.moment(part)
        if not isinstance(part, To):
            return texts.clean(part)
        if part.kind == "job":
            return self.job(part.key)
        return self.pages.link(self.pages.to_page(Rate, part.key), part.text)

    def job(self, job_id: int) -> str:
        """Return the number of a job, which leads to its page if the user may see it."""
        visible = self._page.visible_jobs(self._request)
        if visible.is_unrestricted or visible.jobs.filter(pk=job_id).exists():
            return self._page.job_link(self._request, job_id)
        return texts.clean(f"#{job_id}")
