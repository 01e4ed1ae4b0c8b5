"""A user of the admin with some permissions, and the pages as this user sees them."""

from __future__ import annotations

import html
import re
from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils.http import urlencode


class Visitor:
    """A member of staff, logged in to the admin."""

    def __init__(self, *codenames: str, site: str = "admin", **query: str) -> None:
        self.user = User.objects.create_user(f"visitor-{User.objects.count()}", is_staff=True)
        self.user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        assert self.user.user_permissions.count() == len(set(codenames))
        self.client = Client()
        self.client.force_login(self.user)
        self.site, self.query = site, query

    def url(self, model: str, page: str = "changelist", *arguments: Any) -> str:
        return reverse(f"admin:steady_queue_{model}_{page}", args=arguments, current_app=self.site)

    def see(self, url: str, **query: Any) -> Page:
        given = {} if "?" in url else {**self.query, **query}
        return Page(self.client.get(url, given or None))

    def list(self, model: str = "job", **query: Any) -> Page:
        return self.see(self.url(model), **query)

    def post(self, url: str, data: dict[str, Any] | None = None, **query: Any) -> Page:
        """Post, and follow where that leads."""
        given = urlencode({**self.query, **query})
        return Page(self.client.post(f"{url}?{given}" if given else url, data or {}, follow=True))

    def act(self, action: str, chosen: Any = (), model: str = "job", **query: Any) -> Page:
        """Choose an action of a list for the ticked rows; ``...``: for all that it selects."""
        data: dict[str, Any] = {"action": action, "index": "0", "select_across": "0"}
        data["_selected_action"] = ["1"] if chosen is ... else [str(each) for each in chosen]
        if chosen is ...:
            data["select_across"] = "1"
        return self.post(self.url(model), data, **query)


class Page:
    """An answer: its status, what it shows, and where it leads."""

    def __init__(self, response: Any) -> None:
        self.response, self.status = response, response.status_code
        self.source = response.content.decode()

    def __contains__(self, text: str) -> bool:
        return text in self.text

    @property
    def text(self) -> str:
        """What is read, without markup."""
        body = self.source.partition('<div id="content"')[2] or self.source
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())

    @property
    def messages(self) -> list[str]:
        return [html.unescape(each) for each in re.findall(MESSAGE, self.source)]

    @property
    def ids(self) -> list[int]:
        """The jobs of a list, in their order."""
        return [int(each) for each in re.findall(r">#(\d+)</a></th>", self.source)]

    @property
    def actions(self) -> list[str]:
        return re.findall(r'<option value="(\w+)">', self.source)

    @property
    def buttons(self) -> list[str]:
        return re.findall(r'value="([^"]+)" formaction=', self.source)

    def link(self, label: str) -> str:
        """Return the query of the link of a list with this label."""
        [found] = re.findall(rf'href="([^"]*)"[^>]*>[^<]*{label}', self.source)
        return str(html.unescape(found))

    def answer(self) -> dict[str, list[str]]:
        """Return what a question's form posts."""
        fields = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', self.source)
        given: dict[str, list[str]] = {}
        for name, value in fields:
            given.setdefault(name, []).append(html.unescape(value))
        return given


MESSAGE = r'<li class="(?:success|warning|error|info)">(.*?)</li>'
EVERYTHING = (
    "view_job", "retry_job", "cancel_job", "discard_job", "run_job", "view_arguments", "view_queue",
    "pause_queue", "view_process", "view_processend", "view_recurringtask", "change_recurringtask",
    "add_recurringtask", "delete_recurringtask",
    "run_recurringtask", "view_rate", "view_semaphore", "view_jobbatch", "cancel_batch",
    "retry_batch", "view_overview", "view_share", "add_share", "change_share", "delete_share",
)  # fmt: skip
