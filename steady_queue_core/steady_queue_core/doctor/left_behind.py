"""Jobs in databases of the project that nobody serves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from django.db import connections

from ..configured_backends import queue_databases
from ..dialects.observation import kept_apart
from ..listings import wording
from ..models.left_behind import has_jobs_left_behind
from .finding import Finding, problem
from .patient import Patient


def databases_left_behind(patient: Patient) -> Iterator[Finding]:
    known = queue_databases()
    if patient.using != known[0]:
        return  # Told once.
    for using in connections:
        # Whatever cannot be read is nothing of the queue's.
        with suppress(Exception):
            if using not in known and _is_left_behind(using):
                yield problem(
                    "database-unserved",
                    f'Jobs wait in the database "{wording.name(using)}", which no backend in TASKS '
                    "stores jobs in: nobody runs them.",
                    f"Add a backend with OPTIONS['database'] = {using!r} to TASKS until they have "
                    "run, or discard them.",
                )


def _is_left_behind(using: str) -> bool:
    with kept_apart(connections[using]):
        return has_jobs_left_behind(using)


EXAMINATIONS = (databases_left_behind,)
