"""The pages of the served demo: the admin, and the link that leads into it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model, login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from .link import LINK
from .project import USER

BACKEND = "django.contrib.auth.backends.ModelBackend"
OVERVIEW = "admin:steady_queue_overview_changelist"

REFUSED = (
    "This link does not log in: a link does so once, and this one was used already, or is not the "
    "one that the demo has printed last."
)
NEEDED = "This page is only for the browser that has used the link which the demo has printed."


@require_GET
def go_to_overview(request: HttpRequest) -> HttpResponse:
    """Lead from the root to the overview."""
    return redirect(OVERVIEW)


@never_cache
@require_GET
def log_in(request: HttpRequest, token: str) -> HttpResponse:
    """Log in who comes with the token, once."""
    if not LINK.use(token):
        return _refuse(request, REFUSED)
    user: Any = get_user_model()._default_manager.get(username=USER)
    login(request, user, backend=BACKEND)
    return redirect(OVERVIEW)


@never_cache
def ask_for_link(request: HttpRequest) -> HttpResponse:
    """Tell who is not logged in what to do, in place of a form: there is no password."""
    return _refuse(request, NEEDED)


def _refuse(request: HttpRequest, reason: str) -> HttpResponse:
    context = {
        **admin.site.each_context(request),
        "title": "Not logged in" if request.user.is_anonymous else "Logged in already",
        "reason": reason,
        "overview": "" if request.user.is_anonymous else OVERVIEW,
    }
    template = "admin/steady_queue/demo_refused.html"
    return TemplateResponse(request, template, context, status=403)


urlpatterns = [
    path("", go_to_overview),
    path("login/<str:token>/", log_in),
    path("admin/login/", ask_for_link),
    path("admin/", admin.site.urls),
]
