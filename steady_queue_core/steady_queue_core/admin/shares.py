"""Shares: the weights of the keys of fair queues."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.models import DELETION
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse

from .. import shares
from ..dialects import fair_queues_in, is_storable
from ..features.fair.queues import LARGEST_WEIGHT, LEAST_WEIGHT, is_weight
from ..listings.damage import read_each
from ..listings.keyset import ModelListing
from ..models import Share
from ..shares import fair_queue
from . import databases, texts
from .actions import add_history, log_action
from .base import QueueAdmin
from .columns import attribute, column
from .filters import DatabaseFilter

TAKEN = "This key has a weight of its own already. Change that one."
KEY_HELP = (
    "As jobs store it, such as tenant-1, or shop.customer/17 for a model instance. Empty for the "
    "jobs without a key."
)


class ChangeShareForm(forms.ModelForm):
    """The form of a key that has a weight."""

    #: The database of the request.
    using: str

    weight = forms.FloatField(
        min_value=LEAST_WEIGHT,
        max_value=LARGEST_WEIGHT,
        widget=forms.NumberInput(attrs={"step": "any"}),
        help_text=f"From {LEAST_WEIGHT} to {LARGEST_WEIGHT}, for jobs that become ready from now "
        "on. A key of weight 5 gets five times as much as one of weight 1.",
    )

    class Meta:
        model = Share
        fields = ("weight",)

    def validate_unique(self) -> None:
        """Leave it to ``clean()``: Django would look into the database that routers choose."""

    validate_constraints = validate_unique


class AddShareForm(ChangeShareForm):
    """The form of a key that is to have one."""

    queue_name = forms.CharField(label="Queue", strip=False, max_length=255)
    key = forms.CharField(required=False, strip=False, max_length=255, help_text=KEY_HELP)

    class Meta:
        model = Share
        fields = ("queue_name", "key", "weight")

    def clean_queue_name(self) -> str:
        try:
            return fair_queue(self.cleaned_data["queue_name"], self.using)
        except ValueError as error:
            raise ValidationError(str(error)) from None

    def clean_key(self) -> str:
        key: str = self.cleaned_data["key"]
        if not is_storable(key):
            raise ValidationError("The key has a character that no database stores.")
        return key

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        wanted = {name: given[name] for name in ("queue_name", "key") if name in given}
        if len(wanted) == 2 and Share.objects.using(self.using).filter(**wanted).exists():
            self.add_error("key", TAKEN)
        return given


class ShareAdmin(QueueAdmin):
    """Keys of fair queues with weights of their own, which users may add, change and delete."""

    list_filter = (DatabaseFilter,)
    search_fields = ("queue_name", "key")
    search_help_text = "The full name of a queue, or the full key."
    actions = ("reset",)

    # Those of Django, unlike on the other pages.
    has_view_permission = ModelAdmin.has_view_permission
    has_add_permission = ModelAdmin.has_add_permission
    has_change_permission = ModelAdmin.has_change_permission
    has_delete_permission = ModelAdmin.has_delete_permission

    # --- the list ---

    def listing(self, request: HttpRequest, search: str) -> ModelListing:
        rows = self.rows(request)
        if search:
            found = Q(queue_name=search) | Q(key=search) if is_storable(search) else Q(pk=None)
            rows = rows.filter(found)
        return ModelListing(rows)

    def get_list_display(self, request: HttpRequest) -> Any:
        return (queue, key, weight, state)

    def get_preserved_filters(self, request: HttpRequest) -> str:
        # Django adds them to the links between its pages: these stay with the database.
        return databases.query_string(request).removeprefix("?")

    @admin.action(permissions=["delete"], description="Give selected keys the default weight")
    def reset(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        found = read_each(queryset, list(queryset.values_list("pk", flat=True)))
        # Who may delete rows may delete damaged ones.
        keys = [pk for pk, row in found.items() if self.has_delete_permission(request, row)]
        number = f"{len(keys):,} key{'s'[: len(keys) != 1]}"
        if not self.confirmed(request):
            question = f"Give {number} the default weight of the queue again?"
            return self.confirmation(request, question, "Delete", request.get_full_path())
        self.rows(request).filter(pk__in=keys)._raw_delete(queryset.db)
        message = f"Gave {number} the default weight."
        self.message_user(request, message, messages.SUCCESS)
        log_action(request, "shares", message)
        add_history(request, Share, "Deleted", {each: f"share {each}" for each in keys}, DELETION)
        return None

    # --- the pages of one row ---

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kwargs["form"] = AddShareForm if obj is None else ChangeShareForm
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.using = databases.requested(request)
        return form

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ("queue_name", "key", "weight")
        may_change = self.has_change_permission(request, obj)
        return (queue, key, "weight" if may_change else weight, state)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None else (queue, key, weight, state)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        view = partial(ModelAdmin.change_view, self, request, object_id, form_url, extra_context)
        return self._page_of_row(request, object_id, view)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_delete_permission(request):
            raise PermissionDenied
        view = partial(super().delete_view, request, object_id, extra_context)
        return self._page_of_row(request, object_id, view)

    def _page_of_row(
        self, request: HttpRequest, object_id: str, view: Callable[[], HttpResponse]
    ) -> HttpResponse:
        """Return a page of Django's, unless the row is missing or damaged."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.row_or_answer(request, object_id)
        return row if isinstance(row, HttpResponse) else view()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        rows = Share.objects.using(databases.requested(request))
        if change:
            rows.filter(pk=obj.pk).update(weight=obj.weight)
        else:
            shares.set_weight(obj.queue_name, obj.key, obj.weight, using=rows.db)
            same = rows.filter(queue_name=obj.queue_name, key=obj.key)
            obj.pk = same.values_list("pk", flat=True).get()
        log_action(request, str(obj), "Weight set")

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        Share.objects.using(databases.requested(request)).filter(pk=obj.pk).delete()
        log_action(request, str(obj), "Weight deleted")


queue = attribute("queue", "queue_name")


@column("key")
def key(row: Any) -> str:
    return texts.named(row.key) if row.key else "(jobs without a key)"


@column("weight")
def weight(row: Any) -> str:
    return texts.name(f"{row.weight:g}" if is_weight(row.weight) else row.weight)


@column("state")
def state(row: Any) -> str:
    """Return whether the weight has an effect."""
    queues = fair_queues_in(row._state.db)
    if queues is None or queues.weight_of(str(row.queue_name)) is None:
        return "no effect: the queue is not fair"
    return "in force" if is_weight(row.weight) else "no effect: the weight is not valid"
