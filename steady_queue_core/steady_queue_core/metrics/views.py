"""The view of the metrics, for scrapers with a token and for staff who may see the overview."""

from __future__ import annotations

from typing import Any

from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ..configuration import Configuration
from ..errors import PrometheusMissing
from . import metrics_text

BEARER = "bearer"
#: That of the overview in the admin, which tells the same.
PERMISSION = "steady_queue.view_overview"
PLAIN = "text/plain; charset=utf-8"


# Outside of transactions: a database that does not answer is an answer, too.
@non_atomic_requests
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics to requests that may see them: 401 without a token or a user, 403 with
    wrong ones."""
    if not _is_allowed(request):
        return _refusal(request)
    try:
        body, content_type = metrics_text(request.headers.get("Accept"))
    except PrometheusMissing as error:
        return HttpResponse(f"{error}\n", status=501, content_type=PLAIN)
    return HttpResponse(body, content_type=content_type)


def _is_allowed(request: HttpRequest) -> bool:
    token = Configuration.load().metrics_token
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if token and scheme.lower() == BEARER:
        return constant_time_compare(given.strip(), token)
    return _may_see(getattr(request, "user", None))


def _may_see(user: Any) -> bool:
    is_staff = user is not None and user.is_active and user.is_staff
    return bool(is_staff and user.has_perm(PERMISSION))


def _refusal(request: HttpRequest) -> HttpResponse:
    user = getattr(request, "user", None)
    known = "Authorization" in request.headers or (user is not None and user.is_authenticated)
    if known:
        return HttpResponse("Forbidden\n", status=403, content_type=PLAIN)
    refusal = HttpResponse("Unauthorized\n", status=401, content_type=PLAIN)
    refusal["WWW-Authenticate"] = 'Bearer realm="metrics"'
    return refusal
