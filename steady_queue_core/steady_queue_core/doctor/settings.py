"""The system checks of the queue, those of the database too."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.checks import ERROR, WARNING, CheckMessage, run_checks

from ..listings import wording
from .finding import Finding, problem, warning
from .patient import Patient

#: The tag of the queue's checks.
TAG = "steady_queue"


def system_checks(patient: Patient) -> Iterator[Finding]:
    for message in run_checks(tags=[TAG], databases=[patient.using]):
        if message.is_silenced() or message.level < WARNING:
            continue
        if message.level >= ERROR:
            yield problem("check-error", _text(message), _remedy(message))
        else:
            yield warning("check-warning", _text(message), _remedy(message))


def _text(message: CheckMessage) -> str:
    return f"{wording.line(message.msg)} ({message.id})"


def _remedy(message: CheckMessage) -> str:
    return wording.line(message.hint or "See manage.py check --tag steady_queue.")


EXAMINATIONS = (system_checks,)
