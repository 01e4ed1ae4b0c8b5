"""The base class of all pages: read-only, without forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.contrib import messages
from django.contrib.admin import ModelAdmin, ShowFacets, helpers
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model, QuerySet
from django.forms import Form, Media
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from ..listings.damage import ERRORS, is_damage
from ..listings.keyset import is_storable
from ..listings.listing import Listing, ModelListing
from ..listings.visibility import VisibleJobs
from ..models import Job, JobBatch
from ..models.job import parse_job_id
from . import databases, texts
from .change_list import KeysetChangeList
from .detail import Section

#: The style sheet of the pages.
STYLE = Media(css={"all": ("steady_queue/pages.css",)})


def keep_ids(request: HttpRequest) -> None:
    """Leave only ids among the keys that are ticked in a list: Django puts them into a query."""
    if request.method == "POST":
        given = request.POST.copy()
        ticked = given.getlist(helpers.ACTION_CHECKBOX_NAME)
        ids = [each for each in ticked if parse_job_id(each) is not None]
        given.setlist(helpers.ACTION_CHECKBOX_NAME, ids)
        request.POST = given  # type: ignore[assignment]  # The same class, not yet immutable.


class QueueAdmin(ModelAdmin):
    """The pages of a model whose rows only the queue writes."""

    list_per_page = 50
    show_full_result_count = False
    sortable_by = ()
    show_facets = ShowFacets.NEVER
    change_list_template = "admin/steady_queue/list.html"
    detail_template = "admin/steady_queue/detail.html"
    confirmation_template = "admin/steady_queue/confirmation.html"
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
        try:
            row = self.get_object(request, unquote(object_id))
            if row is None:
                return self.not_found(request, object_id)
            if not self.has_view_permission(request, row):
                raise PermissionDenied
            return self.detail(request, row)
        except ERRORS as error:
            if not is_damage(error):
                raise
            return self.not_found(request, object_id, "is damaged and cannot be shown")

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        try:
            context = {"media": STYLE, **(extra_context or {})}
            return super().history_view(request, object_id, context)
        except ERRORS as error:
            if not is_damage(error):
                raise
            return self.not_found(request, object_id, "is damaged and cannot be shown")

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
            try:
                row = self.get_action_object(request, unquote(object_id))
            except ERRORS as error:
                if not is_damage(error):
                    raise
                return self.not_found(request, object_id, "is damaged and cannot be changed")
            if row is None:
                return self.not_found(request, object_id)
            if not self.is_permitted(request, permission, row):
                raise PermissionDenied
            return do(request, row)

        name = f"{self.opts.app_label}_{self.opts.model_name}_{verb}"
        return path(f"<path:object_id>/{verb}/", self.admin_site.admin_view(view), name=name)

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

    def url(self, request: HttpRequest, name: str, *arguments: Any) -> str:
        """Return the URL of one of the model's pages, for the database of this request."""
        address = reverse(
            f"admin:{self.opts.app_label}_{self.opts.model_name}_{name}",
            args=arguments,
            current_app=self.admin_site.name,
        )
        return address + databases.query_string(request)

    def jobs_url(self, request: HttpRequest, **given: str) -> str:
        """Return the URL of the list of jobs with these filters."""
        address = reverse("admin:steady_queue_job_changelist", current_app=self.admin_site.name)
        using = databases.requested(request)
        if using != databases.queue_databases()[0]:
            given[databases.PARAMETER] = using
        return f"{address}?{urlencode(given)}"

    def job_url(self, request: HttpRequest, job_id: int) -> str:
        """Return the URL of the page of a job."""
        name = "admin:steady_queue_job_change"
        address = reverse(name, args=(job_id,), current_app=self.admin_site.name)
        return address + databases.query_string(request)

    def job_link(self, request: HttpRequest, job_id: int) -> SafeString:
        """Return a link to the page of a job."""
        return format_html('<a href="{}">#{}</a>', self.job_url(request, job_id), job_id)

    def batch_url(self, request: HttpRequest, batch_id: int) -> str | None:
        """Return the URL of the page of a batch, if the site has one and the user may see it."""
        page: Any = self.admin_site._registry.get(JobBatch)
        if page is None or not page.has_view_permission(request):
            return None
        name = "admin:steady_queue_jobbatch_change"
        address = reverse(name, args=(batch_id,), current_app=self.admin_site.name)
        return address + databases.query_string(request)

    def batch_link(self, request: HttpRequest, batch_id: int, kind: str = "") -> SafeString:
        """Return a link to the page of a batch, or its number alone."""
        url, number = self.batch_url(request, batch_id), f"{texts.name(kind)} #{batch_id}".strip()
        if url is None:
            return format_html("{}", number)
        return format_html('<a href="{}">{}</a>', url, number)
