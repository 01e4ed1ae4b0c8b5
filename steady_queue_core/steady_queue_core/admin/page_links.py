"""Links from one page to others, as far as a user may see these."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.utils import quote
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode

from . import databases, texts


class PageLinks:
    """The addresses that one user gets on one site; empty where there is no page for this user."""

    def __init__(self, page: Any, request: HttpRequest) -> None:
        self._site, self._request = page.admin_site, request

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
        page = self._site._registry.get(model)
        return page is not None and page.has_view_permission(self._request)

    def _address(
        self, model: type[Model], page: str, arguments: tuple[str, ...], given: dict[str, str]
    ) -> str:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
        address = reverse(name, args=arguments, current_app=self._site.name)
        return self._with_query(address, given)

    def _with_query(self, address: str, given: dict[str, str]) -> str:
        using = databases.requested(self._request)
        if using != databases.queue_databases()[0]:
            given = {**given, databases.PARAMETER: using}
        query = urlencode({name: value for name, value in given.items() if value})
        return f"{address}?{query}" if query else address
