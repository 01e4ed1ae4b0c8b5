"""The base class of all pages: read-only, without forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.admin import ShowFacets, helpers
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import AutoField, Model, QuerySet
from django.forms import Media
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path

from ..dialects import is_storable
from ..listings.damage import suppress_damage
from ..listings.keyset import Listing, ModelListing
from ..listings.visibility import VisibleJobs
from ..models import Job
from ..models.job import parse_job_id
from . import databases, texts
from .actions import Action, BatchResult, log_action
from .change_list import KeysetChangeList
from .rendering import STYLE, RenderingAdmin

#: Why a page of a row is not shown.
DAMAGED = "is damaged and cannot be shown"


def keep_ids(request: HttpRequest) -> None:
    """Leave only ids among the keys that are ticked in a list: Django puts them into a query."""
    if request.method == "POST":
        given = request.POST.copy()
        ticked = given.getlist(helpers.ACTION_CHECKBOX_NAME)
        ids = [each for each in ticked if parse_job_id(each) is not None]
        given.setlist(helpers.ACTION_CHECKBOX_NAME, ids)
        request.POST = given  # type: ignore[assignment]  # The same class, not yet immutable.


def permission(codename: str) -> Callable[..., bool]:
    """Return the method ``has_..._permission`` of a page for a permission of the app."""

    def has_permission(page: QueueAdmin, request: HttpRequest, obj: Any = None) -> bool:
        return page.may(request, codename)

    return has_permission


class QueueAdmin(RenderingAdmin):
    """The pages of a model whose rows only the queue writes."""

    list_per_page = 50
    show_full_result_count = False
    sortable_by = ()
    show_facets = ShowFacets.NEVER
    change_list_template = "admin/steady_queue/list.html"
    object_history_template = "admin/steady_queue/history.html"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Django would also accept the change permission.
        return self.may(request, f"view_{self.opts.model_name}")

    def may(self, request: HttpRequest, codename: str) -> bool:
        """Whether the user has a permission of the app."""
        user: Any = request.user
        return bool(user.has_perm(f"{self.opts.app_label}.{codename}"))

    @property
    def media(self) -> Media:
        return super().media + STYLE

    # --- visible rows, all based on get_queryset() ---

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.model._default_manager.using(databases.requested(request))
        return rows

    def rows(self, request: HttpRequest, model: type[Model] | None = None) -> QuerySet[Any]:
        """Return the rows of this page, or of the site's page of ``model``, that the user may see
        in the database of the request."""
        model = model or self.model
        page: Any = self if model is self.model else self.admin_site._registry.get(model)
        found: QuerySet[Any] = page.get_queryset(request) if page else model._default_manager.all()
        return found.using(databases.requested(request))

    def visible_jobs(self, request: HttpRequest) -> VisibleJobs:
        """Return the jobs that the user may see."""
        return VisibleJobs(self.rows(request, Job))

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """Return the row with this primary key, if it exists and is visible to the user."""
        try:
            key = self.opts.pk.to_python(object_id)
        except ValidationError:
            return None
        return self.rows(request).filter(pk=key).first() if is_storable(object_id) else None

    # --- lists ---

    def get_changelist(self, request: HttpRequest, **named: Any) -> type[KeysetChangeList]:
        return KeysetChangeList

    def listing(self, request: HttpRequest, search: str) -> Listing:
        """Return the listing of the rows to show."""
        return ModelListing(self.rows(request))

    def list_title(self, request: HttpRequest) -> str:
        return str(self.opts.verbose_name_plural).capitalize()

    def see_also(self, request: HttpRequest) -> list[tuple[str, str]]:
        """Return labels and URLs of other pages about the same things."""
        return []

    def annotate_rows(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Add the attributes that the columns of a list need to its rows."""
        return rows

    def selected_keys(self, request: HttpRequest) -> list[str] | None:
        """Return the keys that are ticked in a list, or ``None`` for all rows that it selects."""
        if request.POST.get("select_across") == "1":
            return None
        return request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if isinstance(self.opts.pk, AutoField):
            keep_ids(request)
        return super().changelist_view(request, extra_context)

    def report(
        self,
        request: HttpRequest,
        which: str,
        action: Action,
        result: BatchResult,
        *,
        goes_on: bool = False,
    ) -> None:
        """Tell the user and the log what has come of an action on many rows; ``which``: their
        names, ``goes_on``: a job does the rest."""
        done = action.summary(result.changed)
        self.message_user(request, f"{done}.", messages.SUCCESS)
        if left := result.requested - result.changed:
            told = f"{left:,} {action.left_alone} and were left alone."
            self.message_user(request, told, messages.WARNING)
        if result.stopped and not goes_on:
            self.message_user(request, result.hint, messages.WARNING)
        log_action(request, which, done)

    # --- pages of one row ---

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            return HttpResponseNotAllowed(["GET"])
        with suppress_damage():
            row = self.row_or_answer(request, object_id)
            if isinstance(row, HttpResponse):
                return row
            if not self.has_view_permission(request, row):
                raise PermissionDenied
            return self.detail(request, row)
        return self.not_found(request, object_id, DAMAGED)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        with suppress_damage():
            context = {"media": STYLE, **(extra_context or {})}
            return super().history_view(request, object_id, context)
        return self.not_found(request, object_id, DAMAGED)

    def detail(self, request: HttpRequest, row: Any) -> HttpResponse:
        """Return the page of a row."""
        raise NotImplementedError

    def not_found(
        self, request: HttpRequest, object_id: str, why: str = "no longer exists"
    ) -> HttpResponse:
        """Redirect to the list, with a message that a row is missing or damaged."""
        name = str(self.opts.verbose_name).capitalize()
        message = f"{name} {texts.name(unquote(object_id))} {why}."
        self.message_user(request, message, messages.WARNING)
        return HttpResponseRedirect(self.url(request, "changelist"))

    def row_or_answer(
        self,
        request: HttpRequest,
        object_id: str,
        get: Callable[[HttpRequest, str], Any] | None = None,
        damaged: str = DAMAGED,
    ) -> Any:
        """Return a row, or the answer to the request if it is missing or damaged."""
        with suppress_damage():
            row = (get or self.get_object)(request, unquote(object_id))
            return self.not_found(request, object_id) if row is None else row
        return self.not_found(request, object_id, damaged)

    def list_path(
        self, name: str, view: Callable[[HttpRequest], HttpResponseBase], *methods: str
    ) -> URLPattern:
        """Return the URL pattern of another page of the list, which is read by these methods."""

        def checked(request: HttpRequest) -> HttpResponseBase:
            if not self.has_view_permission(request):
                raise PermissionDenied
            if request.method not in methods:
                return HttpResponseNotAllowed(["GET"])
            return view(request)

        return self._path(f"{name}/", checked, name)

    def _path(self, route: str, view: Any, name: str) -> URLPattern:
        full = f"{self.opts.app_label}_{self.opts.model_name}_{name}"
        pattern: URLPattern = path(route, self.admin_site.admin_view(view), name=full)
        return pattern

    def is_permitted(self, request: HttpRequest, permission: str, row: Any = None) -> bool:
        """Whether the user may see a row (or any row) and has ``permission`` for it."""
        may: Callable[..., bool] = getattr(self, f"has_{permission}_permission")
        return self.has_view_permission(request, row) and may(request, row)

    def get_action_object(self, request: HttpRequest, object_id: str) -> Any:
        """Return the row of a button: that of the page, unless less has to be read."""
        return self.get_object(request, object_id)

    def action_path(
        self, verb: str, permission: str, do: Callable[[HttpRequest, Any], HttpResponse]
    ) -> URLPattern:
        """Return the URL pattern of a button that requires a permission."""

        def view(request: HttpRequest, object_id: str) -> HttpResponse:
            if not self.is_permitted(request, permission):
                raise PermissionDenied
            if request.method != "POST":
                return HttpResponseNotAllowed(["POST"])
            get, damaged = self.get_action_object, "is damaged and cannot be changed"
            row = self.row_or_answer(request, object_id, get, damaged)
            if isinstance(row, HttpResponse):
                return row
            if not self.is_permitted(request, permission, row):
                raise PermissionDenied
            return do(request, row)

        return self._path(f"<path:object_id>/{verb}/", view, verb)
