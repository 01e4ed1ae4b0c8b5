"""The forms of actions on jobs for which the user has to enter something."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django import forms
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

from ..configuration.queues import LONGEST_NAME
from ..configured_backends import backends_on
from ..dialects.database import Database
from ..durations import LONGEST
from ..models.operations import move, reschedule
from . import texts

#: What the names of the fields begin with, among those that an action of a list has.
PREFIX = "act"


class ActionForm(forms.Form):
    """A form for the options of an action on jobs of one database."""

    def __init__(self, using: str, given: Mapping[str, Any] | None = None) -> None:
        super().__init__(given, prefix=PREFIX)
        self.using = using

    @property
    def chosen(self) -> dict[str, Any]:
        """The options, once the form is valid."""
        raise NotImplementedError

    @classmethod
    def told(cls, options: Mapping[str, Any]) -> str:
        """Return what was chosen, as the end of a sentence."""
        raise NotImplementedError


class MoveForm(ActionForm):
    """The queue and the priority that jobs get."""

    queue_name = forms.CharField(
        label="Queue",
        required=False,
        strip=False,
        max_length=LONGEST_NAME,
        help_text="Empty: each job stays in its queue.",
    )
    priority = forms.IntegerField(
        required=False,
        min_value=move.LOWEST,
        max_value=move.HIGHEST,
        help_text=f"From {move.LOWEST} to {move.HIGHEST}; higher ones run first. Empty: each job "
        "keeps its priority.",
    )

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return given
        try:
            move.changes_of(**self.chosen)
        except ValueError as error:
            raise forms.ValidationError(texts.clean(error)) from None
        allowed = _allowed_queues(self.using)
        if given["queue_name"] and allowed and given["queue_name"] not in allowed:
            names = ", ".join(map(texts.name, sorted(allowed)))
            self.add_error("queue_name", f"TASKS allows these queues only: {names}.")
        return given

    @property
    def chosen(self) -> dict[str, Any]:
        return {
            "queue_name": self.cleaned_data["queue_name"] or None,
            "priority": self.cleaned_data["priority"],
        }

    @classmethod
    def told(cls, options: Mapping[str, Any]) -> str:
        parts = []
        if options.get("queue_name") is not None:
            parts.append(f" to queue {texts.name(options['queue_name'])}")
        if options.get("priority") is not None:
            parts.append(f" to priority {options['priority']}")
        return ",".join(parts)


class RescheduleForm(ActionForm):
    """The time at which jobs are due."""

    time = forms.DateTimeField(
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": "any"}),
        help_text="In Django's current time zone.",
    )
    delay = forms.DurationField(
        label="Or in",
        required=False,
        help_text="Such as 90 (seconds), 15:00 (minutes), 2:00:00 (hours) or 1 00:00:00 (days).",
    )

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return given
        wanted = [each for each in (given["time"], given["delay"]) if each is not None]
        if len(wanted) != 1:
            raise forms.ValidationError("Give a time, or how long from now: one of the two.")
        if given["delay"] is not None and not timedelta(0) <= given["delay"] <= LONGEST:
            raise forms.ValidationError(f"Give from 0 seconds to {LONGEST.days} days.")
        try:
            given["due"] = reschedule.due_at(Database.of(self.using), wanted[0])
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None
        return given

    @property
    def chosen(self) -> dict[str, Any]:
        return {"due": self.cleaned_data["due"]}

    @classmethod
    def told(cls, options: Mapping[str, Any]) -> str:
        return f" to {texts.moment(options['due'])}"


def form_of(
    form: type[ActionForm] | None, request: HttpRequest, using: str, *, is_filled: bool
) -> ActionForm | None:
    """Return the form of an action, with what the request has filled in."""
    if form is None:
        return None
    return form(using, request.POST if is_filled else None)


def _allowed_queues(using: str) -> set[str]:
    """Return the only queues that jobs of a database may be in; empty: any."""
    try:
        backends = backends_on(using).values()
    except ImproperlyConfigured:
        return set()  # Reported by the system checks.
    if not all(each.queues for each in backends):
        return set()
    return {name for each in backends for name in each.queues}
