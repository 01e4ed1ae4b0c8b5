"""What users have done lately on the pages of Steady Queue."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest, HttpResponse

from ..listings.visibility import is_unrestricted
from . import texts
from .base import QueueAdmin
from .detail import Table

#: Entries of the admin's log that are examined, the newest ones, and acts that are shown.
MOST_EXAMINED, MOST_ACTS = 20_000, 200
#: Characters of what was done.
MOST_SHOWN = 300


class Act(NamedTuple):
    """Entries that one user has made in one minute with the same words."""

    at: datetime
    user: str
    what: str
    model: str
    number: int
    #: One of the rows.
    example: str


def recent_acts_page(page: QueueAdmin, request: HttpRequest) -> HttpResponse:
    """Return the page of what was done to rows of the pages that the user may see. Who may see
    some rows only of any of them is shown what they have done themselves."""
    models = [
        model for model, other in page.admin_site._registry.items()
        if model._meta.app_label == page.opts.app_label and other.has_view_permission(request)
    ]  # fmt: skip
    sees_all = all(_is_whole(page.admin_site._registry[model], request) for model in models)
    only: Any = None if sees_all else request.user.pk
    found, is_cut = recent_acts(models, only)
    rows = [
        (texts.moment(act.at), texts.name(act.user), texts.clean(act.what, MOST_SHOWN), act.model,
         f"{act.number:,}", texts.name(act.example))
        for act in found
    ]  # fmt: skip
    note = "Nothing was done." if not rows else ""
    if is_cut:
        note = f"The latest {len(rows):,}. What was done earlier is in the history of each row."
    headings = ("When", "Who", "What", "To", "How many", "Such as")
    sections = [Table("Recent actions", headings, rows, note)]
    return page.render_detail(request, "Recent actions", "Recent actions", sections)


def _is_whole(page: Any, request: HttpRequest) -> bool:
    """Whether a page shows all its rows to the user, as far as that can be told without them."""
    names = getattr(type(page), "get_queue_names", None)
    shows_each = type(page).has_view_permission.__module__.startswith(__package__ or "")
    shows_queues = names is None or names.__module__.startswith(__package__ or "")
    return is_unrestricted(page.rows(request)) and shows_each and shows_queues


def recent_acts(models: Iterable[Any], user_id: Any = None) -> tuple[list[Act], bool]:
    """Return what was done to rows of these models, by that user or by anyone, the latest first,
    and whether there is more."""
    types = ContentType.objects.get_for_models(*models)
    names = {each.pk: str(model._meta.verbose_name) for model, each in types.items()}
    newest = LogEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    entries = LogEntry.objects.filter(content_type_id__in=names, pk__gt=newest - MOST_EXAMINED)
    if user_id is not None:
        entries = entries.filter(user_id=user_id)
    # By their ids: there is no index on the time.
    entries = entries.select_related("user").order_by("-pk")
    acts: list[Act] = []
    for (_, _, kind, what), some in groupby(entries.iterator(chunk_size=1000), _key):
        group = list(some)
        if len(acts) == MOST_ACTS:
            return acts, True
        first = group[0]
        acts.append(
            Act(first.action_time, first.user.get_username(), what or first.get_change_message(),
                names[kind], len(group), first.object_repr)
        )  # fmt: skip
    return acts, newest > MOST_EXAMINED


def _key(entry: Any) -> tuple[Any, ...]:
    minute = entry.action_time.replace(second=0, microsecond=0)
    what = entry.get_change_message() or entry.get_action_flag_display()
    return minute, entry.user_id, entry.content_type_id, what
