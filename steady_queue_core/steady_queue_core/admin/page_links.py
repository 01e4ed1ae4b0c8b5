"""Links from one page to others, as far as a user may see these."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote as percent_encoded

from django.contrib.admin.utils import quote
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode

from . import databases, texts

#: Stands for the key of a row in an address.
PLACE = "steady-queue-key"
#: Characters that an address keeps, as in those of Django.
KEPT = "/~:@!$&'()*+,;="


class PageLinks:
    """The addresses that one user gets on one site; empty where there is no page for this user."""

    def __init__(self, page: Any, request: HttpRequest) -> None:
        self._site, self._request = page.admin_site, request
        using = databases.requested(request)
        self._database = "" if using == databases.queue_databases()[0] else using
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
        if self._database:
            given = {**given, databases.PARAMETER: self._database}
        query = urlencode({name: value for name, value in given.items() if value})
        return f"{address}?{query}" if query else address
