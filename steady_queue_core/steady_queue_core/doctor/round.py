"""One examination after the other: one that fails is a finding, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from django.db import connections

from ..dialects.observation import kept_apart
from ..listings import wording
from .finding import Finding, info, problem
from .patient import Patient

Examination = Callable[[Patient], Iterable[Finding]]

CONNECT = (
    "See whether the server runs and answers, and whether the address, user and password in "
    "DATABASES are right. The queue's processes wait until it is back."
)


def findings_of(examinations: Sequence[Examination], patient: Patient) -> list[Finding]:
    """Return what these examinations find."""
    found: list[Finding] = []
    for examination in examinations:
        try:
            with kept_apart(connections[patient.using]):
                found += examination(patient)
        except Exception as error:  # Whatever it is: the others may find the cause.
            connection = connections[patient.using]
            if patient.database.dialect.is_lost_connection(connection, error):
                return [unreachable(patient.using, error)]
            found.append(_not_examined(examination, error))
    return found


def unreachable(using: str, error: Exception) -> Finding:
    """Return the finding that a database does not answer."""
    said = wording.line(error) or type(error).__name__
    return problem("database-unreachable", f'Database "{using}" does not answer: {said}', CONNECT)


def few(findings: Iterator[Finding], most: int = 5) -> Iterator[Finding]:
    """Yield the first ones of alike findings."""
    for _, finding in zip(range(most), findings, strict=False):
        yield finding


def _not_examined(examination: Examination, error: Exception) -> Finding:
    module = getattr(examination, "__module__", "").rpartition(".")[2]
    what = f"{module}: {getattr(examination, '__name__', '')}".replace("_", " ")
    return info(
        "not-examined",
        f"Could not be examined ({what}): {type(error).__name__}: {wording.line(error)[:500]}",
        "If a privilege is missing, grant it, or have somebody with more rights run the doctor.",
    )
