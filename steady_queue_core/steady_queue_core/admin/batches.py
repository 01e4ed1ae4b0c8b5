"""Batches, chains, groups and workflows: the list, the page of each, and the actions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern

from ..batches.handle import BatchStatus, status_of
from ..dialects import is_storable
from ..dialects.database import Database
from ..listings.damage import read_each
from ..models import JobBatch
from ..models.job import parse_job_id
from . import databases, texts
from .actions import TIME_LIMIT, BatchResult, add_history, log_action, run_in_batches
from .base import QueueAdmin, permission
from .batch_actions import BATCH_ACTIONS, BatchAction
from .batch_list import COLUMNS, KINDS, LARGE, STATUSES, BatchListing, tally_each
from .batch_page import BatchPage
from .filters import DatabaseFilter, KindFilter, StatusFilter

#: Members of a batch that goes on are counted up to this number in the list.
COUNTED = 1_000


class BatchAdmin(QueueAdmin):
    """Batches of all kinds, which can be cancelled and retried, but not edited."""

    list_filter = (DatabaseFilter, StatusFilter, KindFilter)
    search_fields = ("id", "description")
    search_help_text = "The id of a batch, or a part of its description."
    actions = ("cancel", "retry")

    # --- permissions ---

    has_cancel_permission = permission("cancel_batch")
    has_retry_permission = permission("retry_batch")
    has_view_arguments_permission = permission("view_arguments")

    # --- the list ---

    def get_list_display(self, request: HttpRequest) -> Any:
        return COLUMNS

    def listing(self, request: HttpRequest, search: str) -> BatchListing:
        given = {name: request.GET[name] for name in ("status", "kind") if request.GET.get(name)}
        if not is_storable(search) or given.get("status", BatchStatus.OPEN) not in [*STATUSES]:
            raise IncorrectLookupParameters
        if given.get("kind", KINDS[0]) not in KINDS:
            raise IncorrectLookupParameters
        return BatchListing(self.rows(request), given, search.strip())

    def annotate_rows(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        tallies = tally_each(databases.requested(request), rows, COUNTED)
        for row, tally in zip(rows, tallies, strict=True):
            row.tally = tally
        return rows

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        """Find a batch by its id, for autocompletion. No index serves other searches."""
        batch_id = parse_job_id(search_term.strip())
        found = queryset.filter(pk=batch_id) if batch_id is not None else queryset.none()
        return found.order_by("pk"), False

    @admin.action(permissions=["cancel"], description="Cancel selected batches")
    def cancel(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._apply_to_list(request, BATCH_ACTIONS["cancel"])

    @admin.action(permissions=["retry"], description="Retry selected batches")
    def retry(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._apply_to_list(request, BATCH_ACTIONS["retry"])

    def _apply_to_list(self, request: HttpRequest, action: BatchAction) -> HttpResponse | None:
        chosen = self.selected_keys(request)
        listing = self.listing(request, request.GET.get("q", ""))
        if not self.confirmed(request):
            count = listing.count() if chosen is None else None
            number = count.text if count else str(len(chosen)) if chosen else "all listed"
            question = f"{action.label} {number} batches? {action.warning}"
            if chosen is None:
                question += f" What takes more than {TIME_LIMIT:g} seconds has to be repeated."
            return self.confirmation(request, question, action.label, request.get_full_path())
        parts = listing.ids() if chosen is None else [[int(each) for each in chosen]]
        result = self._apply(request, action, parts)
        which = "all listed batches" if chosen is None else f"batches {', '.join(chosen)}"
        self.report(request, which, action, result)
        return None

    def _apply(
        self, request: HttpRequest, action: BatchAction, parts: Iterable[Sequence[int]]
    ) -> BatchResult:
        """Do something to the batches with these ids, each by itself."""
        database = Database.of(databases.requested(request))

        def one_by_one() -> Iterator[Sequence[Any]]:
            for ids in parts:
                rows = self._brief(request).filter(action.applies)
                found = read_each(rows, ids)
                yield from ([found.get(pk)] for pk in ids)

        def do(rows: Sequence[Any]) -> int:
            [row] = rows or [None]
            if row is None or not self.is_permitted(request, action.name, row):
                return 0
            if not action.do(database, row.pk):
                return 0
            add_history(request, JobBatch, action.past, {row.pk: str(row)})
            return 1

        return run_in_batches(database, one_by_one(), do)

    # --- the page of one batch ---

    def get_urls(self) -> list[URLPattern]:
        own = [
            self.action_path(name, name, partial(self._apply_to_one, action))
            for name, action in BATCH_ACTIONS.items()
        ]
        return [*own, *super().get_urls()]

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        batch_id = parse_job_id(object_id)
        rows = self.rows(request).select_related(None).select_related("member")
        return None if batch_id is None else rows.filter(pk=batch_id).first()

    def get_action_object(self, request: HttpRequest, object_id: str) -> Any:
        batch_id = parse_job_id(object_id)
        return None if batch_id is None else self._brief(request).filter(pk=batch_id).first()

    def detail(self, request: HttpRequest, row: Any) -> HttpResponse:
        with_metadata = self.has_view_arguments_permission(request, row)
        sections = BatchPage(self, request, row).sections(with_metadata=with_metadata)
        buttons = [
            (action.label, self.url(request, name, row.pk))
            for name, action in BATCH_ACTIONS.items()
            if status_of(row) in action.statuses and self.is_permitted(request, name, row)
        ]
        history, title = self.url(request, "history", row.pk), f"{row.kind} #{row.pk}"
        title = texts.name(title[:1].upper() + title[1:])
        return self.render_detail(request, row, title, sections, buttons, history)

    def _brief(self, request: HttpRequest) -> Any:
        return self.rows(request).select_related(None).defer(*LARGE)

    def _apply_to_one(self, action: BatchAction, request: HttpRequest, row: Any) -> HttpResponse:
        page = self.url(request, "change", row.pk)
        if not self.confirmed(request):
            question = f"{action.label} batch #{row.pk}? {action.warning}"
            return self.confirmation(request, question, action.label, page)
        result = self._apply(request, action, [[row.pk]])
        if result.stopped:
            told = f"{action.label} batch #{row.pk}: {result.stopped}."
            self.message_user(request, told, messages.ERROR)
        elif result.changed:
            self.message_user(request, f"{action.past} batch #{row.pk}.", messages.SUCCESS)
            log_action(request, f"batch #{row.pk}", action.past)
        else:
            told = f"Batch #{row.pk} {action.left_alone}."
            self.message_user(request, told, messages.WARNING)
        return HttpResponseRedirect(page)
