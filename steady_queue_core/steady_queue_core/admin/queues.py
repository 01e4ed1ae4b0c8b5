"""Queues: their ready jobs, and whether they are paused."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import DELETION
from django.contrib.admin.utils import quote
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern
from django.utils.html import format_html

from ..configuration.queues import LONGEST_NAME
from ..dialects import fair_queues_in, is_storable
from ..dialects.database import Database
from ..listings.counts import BoundedCount
from ..listings.damage import read_each
from ..listings.job_listing import JobListing
from ..listings.job_rows import read_briefly
from ..listings.keyset import Order, Page, split_page
from ..listings.queues import count_ready
from ..listings.states import READY
from ..listings.visibility import is_unrestricted
from ..models import Job, Overview, Pause, Queue
from . import databases, texts
from .actions import add_history, log_action
from .base import QueueAdmin, permission
from .columns import attribute, column
from .detail import Fields
from .filters import DatabaseFilter, queue_names
from .job_actions import DISCARD
from .page_links import back_to


@dataclass(frozen=True)
class QueueListing:
    """Queues by name. Only paused queues have a row."""

    queryset: QuerySet[Any]
    #: Sorted.
    names: list[str]

    def page(self, cursor: str, size: int) -> Page:
        start = Order(Pause, ("queue_name",)).parse(cursor)
        if start.key is None:
            names = self.names
        elif start.backwards:
            names = self.names[: bisect_left(self.names, start.key[0])][::-1]
        else:
            names = self.names[bisect_right(self.names, start.key[0]) :]
        keys, page = split_page([(each,) for each in names[: size + 1]], start, size)
        return page._replace(rows=[Pause(queue_name=each) for (each,) in keys])

    def count(self) -> BoundedCount:
        return BoundedCount(len(self.names))


name = attribute("queue", "queue_name")


@column("state")
def state(queue: Any) -> str:
    if not queue.paused:
        return "open"
    return format_html("<strong>{}</strong>", texts.dated("paused", queue.paused_since))


@column("ready")
def ready(queue: Any) -> str:
    return format_html('<a href="{}">{}</a>', queue.jobs_url, queue.count.text)


@column("oldest wait")
def oldest(queue: Any) -> str:
    return texts.between(queue.count.first, queue.present)


@column("shared fairly")
def fair(queue: Any) -> str:
    """Return the weight that keys of a fair queue have by default; nothing for other queues."""
    return "" if queue.weight is None else f"weight {queue.weight:g}"


def queue_fields(queue: Any) -> Fields:
    """Return the fields of the page of a queue."""
    return Fields(
        "Queue",
        [
            ("Name", texts.clean(queue.queue_name)),
            ("State", state(queue)),
            ("Shared fairly", fair(queue)),
            ("Paused since", texts.moment(queue.paused_since)),
            ("Ready jobs", ready(queue)),
            ("Oldest wait", oldest(queue)),
        ],
    )


class QueuesAdmin(QueueAdmin):
    """Queues. A queue has no row of its own except, while it is paused, that of its pause."""

    list_filter = (DatabaseFilter,)
    search_fields = ("queue_name",)
    search_help_text = "Part of a queue name."
    actions = ("pause", "resume", "clear")

    has_view_permission = permission("view_queue")
    has_pause_permission = permission("pause_queue")
    has_clear_permission = permission("discard_job")

    def get_queue_names(self, request: HttpRequest, names: Iterable[str]) -> list[str]:
        """Return those of ``names`` whose queues the user may see.

        Override this to let users see some queues only. A queue has a row only while it is paused:
        overriding ``get_queryset()`` alone would hide all open queues.
        """
        rows = self.rows(request)
        if is_unrestricted(rows):
            return list(names)
        return list(rows.filter(pk__in=list(names)).values_list("pk", flat=True))

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        if not _is_name(object_id) or not self.get_queue_names(request, [object_id]):
            return None
        return Pause(queue_name=object_id)

    # --- the list ---

    def listing(self, request: HttpRequest, search: str) -> QueueListing:
        names = (each for each in queue_names(databases.requested(request)) if search in each)
        return QueueListing(self.rows(request), sorted(self.get_queue_names(request, names)))

    def get_list_display(self, request: HttpRequest) -> Any:
        columns = (name, state, ready, oldest)
        return (*columns, fair) if fair_queues_in(databases.requested(request)) else columns

    def annotate_rows(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        using = databases.requested(request)
        names = [row.queue_name for row in rows]
        counts = count_ready(using, names, self.visible_jobs(request))
        pauses = read_each(Pause.objects.using(using), names)
        present, fair_queues = Database.of(using).current_time(), fair_queues_in(using)
        for row, count in zip(rows, counts, strict=True):
            row.count, row.present = count, present
            row.weight = fair_queues.weight_of(row.queue_name) if fair_queues else None
            row.paused = row.queue_name in pauses
            row.paused_since = getattr(pauses.get(row.queue_name), "created_at", None)
            row.jobs_url = self.jobs_url(request, state=READY.name, queue=row.queue_name)
        return rows

    @admin.action(permissions=["pause"], description="Pause selected queues")
    def pause(self, request: HttpRequest, queryset: Any) -> None:
        self._switch(request, "Paused", Queue.pause)

    @admin.action(permissions=["pause"], description="Resume selected queues")
    def resume(self, request: HttpRequest, queryset: Any) -> None:
        self._switch(request, "Resumed", Queue.resume)

    @admin.action(permissions=["clear"], description="Clear selected queues of ready jobs")
    def clear(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._clear(request, self._names(request, "clear"), request.get_full_path())

    def _names(self, request: HttpRequest, permission: str) -> list[str]:
        chosen = self.selected_keys(request)
        if chosen is None:
            search = request.GET.get("q", "")
            names = self.listing(request, search).names
        else:
            chosen = [each for each in chosen if _is_name(each)]
            seen = {*self.get_queue_names(request, chosen)}
            names = [each for each in chosen if each in seen]
        return [
            each for each in names if self.is_permitted(request, permission, Pause(queue_name=each))
        ]

    def _switch(
        self, request: HttpRequest, past: str, do: Callable[[Queue], bool], *names: str
    ) -> None:
        using = databases.requested(request)
        chosen = names or self._names(request, "pause")
        found = [each for each in chosen if do(Queue(each, using))]
        if not found:
            self.message_user(
                request, f"{past} no queues: there was nothing to change.", messages.WARNING
            )
            return
        listed = ", ".join(texts.name(each) for each in found)
        self.message_user(request, f"{past}: {listed}.", messages.SUCCESS)
        log_action(request, listed, past)
        add_history(request, Pause, past, {each: each for each in found})

    def _clear(self, request: HttpRequest, names: list[str], back: str) -> HttpResponse | None:
        visible = self.visible_jobs(request)
        using, listed = visible.jobs.db, ", ".join(texts.name(each) for each in names)
        if not self.confirmed(request):
            total = BoundedCount.sum_of(count_ready(using, names, visible))
            question = f"Discard {total.text} ready jobs of {listed}?{DISCARD.warning}"
            return self.confirmation(request, question, "Clear", back)
        cleared = 0
        for each in names:
            listing = JobListing(visible, READY, {"queue": each})
            permitted = partial(self._discardable, request)
            result = DISCARD.apply(using, listing.batches(), permitted, lambda ids: None)
            cleared += result.changed
            message = f"Cleared of {result.changed:,} ready jobs"
            add_history(request, Pause, message, {each: each}, DELETION)
            if result.stopped:
                self.message_user(request, result.hint, messages.WARNING)
                break
        self.message_user(request, f"Discarded {cleared:,} ready jobs of {listed}.")
        log_action(request, listed, f"Cleared of {cleared:,} ready jobs")
        return None

    def _discardable(self, request: HttpRequest, ids: Sequence[int]) -> list[int]:
        """Return those of ``ids`` whose jobs the job page of this site lets the user discard."""
        page = self.admin_site._registry.get(Job)
        may = getattr(page, "has_discard_permission", lambda *_: True)
        jobs = read_briefly(self.rows(request, Job), ids)
        return [job.pk for job in jobs if may(request, job)]

    # --- the page of one queue ---

    def get_urls(self) -> list[URLPattern]:
        own = [
            self.action_path("pause", "pause", partial(self._switch_one, "Paused", Queue.pause)),
            self.action_path("resume", "pause", partial(self._switch_one, "Resumed", Queue.resume)),
            self.action_path("clear", "clear", self._clear_one),
        ]
        return [*own, *super().get_urls()]

    def detail(self, request: HttpRequest, row: Any) -> HttpResponse:
        [queue], key = self.annotate_rows(request, [row]), row.queue_name
        title, buttons = f"Queue {texts.name(key)}", self._buttons(request, queue)
        return self.render_detail(request, key, title, [queue_fields(queue)], buttons)

    def _buttons(self, request: HttpRequest, queue: Any) -> list[tuple[str, str]]:
        wanted = []
        if self.is_permitted(request, "pause", queue):
            wanted.append(("Resume", "resume") if queue.paused else ("Pause", "pause"))
        if self.is_permitted(request, "clear", queue):
            wanted.append(("Clear", "clear"))
        key = quote(queue.queue_name)
        return [(label, self.url(request, verb, key)) for label, verb in wanted]

    def _switch_one(
        self, past: str, do: Callable[[Queue], bool], request: HttpRequest, row: Any
    ) -> HttpResponse:
        self._switch(request, past, do, row.queue_name)
        return HttpResponseRedirect(self._overview(request) or self._page(request, row))

    def _clear_one(self, request: HttpRequest, row: Any) -> HttpResponse:
        page = self._page(request, row)
        return self._clear(request, [row.queue_name], page) or HttpResponseRedirect(page)

    def _overview(self, request: HttpRequest) -> str:
        """Return the address of the overview, if the button was there."""
        page: Any = self.admin_site._registry.get(Overview)
        is_there = request.POST.get("back") == "overview" and page is not None
        return back_to(page, request) if is_there else ""

    def _page(self, request: HttpRequest, row: Any) -> str:
        return self.url(request, "change", quote(row.queue_name))


def _is_name(text: str) -> bool:
    return is_storable(text) and 0 < len(text) <= LONGEST_NAME
