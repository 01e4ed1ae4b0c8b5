"""The forms for the weight of a key."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from ..dialects import is_storable
from ..fair_queues import LARGEST_WEIGHT, LEAST_WEIGHT
from ..models import Share
from ..shares import fair_queue

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
