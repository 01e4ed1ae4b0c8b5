"""Renders the pages of one row, and those that ask for confirmation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.forms import Form, Media
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from . import texts
from .detail import Section
from .page_links import LinkingAdmin

#: The style sheet of the pages.
STYLE = Media(css={"all": ("steady_queue/pages.css",)})


class RenderingAdmin(LinkingAdmin):
    """A page that renders its templates."""

    detail_template = "admin/steady_queue/detail.html"
    confirmation_template = "admin/steady_queue/confirmation.html"

    def render_detail(
        self,
        request: HttpRequest,
        original: Any,
        title: str,
        sections: Sequence[Section],
        buttons: Sequence[tuple[str, str]] = (),
        history_url: str = "",
    ) -> HttpResponse:
        """Render the page of ``original``; ``buttons`` are labels and URLs to post to."""
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "original": texts.name(original),
            "opts": self.opts,
            "add": False,
            "change": True,
            "has_view_permission": True,
            "is_popup": False,
            "media": STYLE,
            "sections": sections,
            "buttons": buttons,
            "history_url": history_url,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, self.detail_template, context)

    def confirmation(
        self,
        request: HttpRequest,
        question: str,
        verb: str,
        back: str,
        notes: Sequence[str] = (),
        *,
        form: Form | None = None,
        in_background: bool = False,
    ) -> HttpResponse:
        """Ask for confirmation. Yes repeats the request with ``confirmed``, no leads ``back``.

        ``notes`` are below the question, and ``form`` is to be filled in. ``in_background``:
        whether there is a second Yes, with ``background``.
        """
        omitted = {"csrfmiddlewaretoken", "index", "confirmed", "background"}
        omitted |= set() if form is None else {form.add_prefix(name) for name in form.fields}
        context = {
            **self.admin_site.each_context(request),
            "title": "Are you sure?" if form is None else verb,
            "opts": self.opts,
            "media": STYLE,
            "question": question,
            "verb": verb,
            "notes": notes,
            "form": form,
            "in_background": in_background,
            "given": [
                (name, value)
                for name, values in request.POST.lists()
                if name not in omitted
                for value in values
            ],
            "back": back,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, self.confirmation_template, context)

    def confirmed(self, request: HttpRequest) -> bool:
        return request.POST.get("confirmed") == "yes"
