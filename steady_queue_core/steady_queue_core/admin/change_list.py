"""Django's change list with pages from a listing, without COUNT and OFFSET."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest

from ..listings.counts import BoundedCount, ResultCount
from ..listings.keyset import Listing, Page
from . import databases


class KeysetChangeList(ChangeList):
    """A change list whose ``model_admin`` has ``listing(request, search)``."""

    listing: Listing
    model_admin: Any
    filter_specs: Any

    def __init__(self, request: HttpRequest, *arguments: Any, **named: Any) -> None:
        super().__init__(request, *arguments, **named)
        self.title = self.model_admin.list_title(request)
        self.see_also = self.model_admin.see_also(request)

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        self.filter_specs, self.has_filters, left, _, self.has_active_filters = self.get_filters(
            request
        )
        if left:
            # A lookup that no page offers may be arbitrarily expensive.
            raise IncorrectLookupParameters
        clearable = [spec.parameter_name for spec in self.filter_specs if spec.clearable]
        self.clear_all_filters_qs = self.get_query_string(remove=clearable)
        self.has_active_filters = any(self.params.get(name) for name in clearable)
        self.database = databases.query_string(request)
        self.listing = self.model_admin.listing(request, self.query)
        return self.listing.queryset

    def get_results(self, request: HttpRequest) -> None:
        self.is_later_page = PAGE_VAR in request.GET
        page = self.listing.page(request.GET.get(PAGE_VAR, ""), self.list_per_page)
        self.result_list = self.model_admin.annotate_rows(request, page.rows)
        self.count = self.listing.count() or _seen(page)
        self.result_count = ResultCount.of(self.count, len(page.rows))
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = bool(page.rows)
        self.can_show_all = self.multi_page = False
        self.paginator = None
        self.page = page

    def url_for_result(self, result: Any) -> str:
        return super().url_for_result(result) + self.database

    @property
    def first_url(self) -> str | None:
        return self.get_query_string() if self.is_later_page else None

    @property
    def previous_url(self) -> str | None:
        return self._url(self.page.previous)

    @property
    def following_url(self) -> str | None:
        return self._url(self.page.following)

    def _url(self, cursor: Any) -> str | None:
        return self.get_query_string({PAGE_VAR: str(cursor)}) if cursor else None


def _seen(page: Page) -> BoundedCount:
    return BoundedCount(len(page.rows), exact=not (page.previous or page.following))
