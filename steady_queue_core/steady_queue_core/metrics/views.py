"""The view of the metrics, for scrapers with a token and for staff."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ..configuration import Configuration
from .exposition import metrics_text

BEARER = "Bearer "


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics to requests that may see them: 401 without a token or a user, 403 with
    wrong ones."""
    if not _is_allowed(request):
        return _refusal(request)
    body, content_type = metrics_text(request.headers.get("Accept"))
    return HttpResponse(body, content_type=content_type)


def _is_allowed(request: HttpRequest) -> bool:
    token = Configuration.load().metrics_token
    given = request.headers.get("Authorization", "")
    if token and given.startswith(BEARER):
        return constant_time_compare(given.removeprefix(BEARER), token)
    return _is_staff(getattr(request, "user", None))


def _is_staff(user: Any) -> bool:
    return bool(user is not None and user.is_active and user.is_staff)


def _refusal(request: HttpRequest) -> HttpResponse:
    user = getattr(request, "user", None)
    known = "Authorization" in request.headers or (user is not None and user.is_authenticated)
    if known:
        return HttpResponse("Forbidden\n", status=403, content_type="text/plain")
    refusal = HttpResponse("Unauthorized\n", status=401, content_type="text/plain")
    refusal["WWW-Authenticate"] = 'Bearer realm="metrics"'
    return refusal
