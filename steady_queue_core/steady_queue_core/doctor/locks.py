"""What keeps readers of the tables, the doctor among them, waiting for rows, or from seeing any."""

from __future__ import annotations

from ..dialects import PROBLEM
from .database import observations
from .finding import Finding
from .patient import Patient
from .round import findings_of

CODE, HIDDEN = "table-locked", "rows-hidden"
#: What is found where rows that are there cannot be seen: those of migrations, or of a job.
UNSEEN = {"migrations-missing", "job-unknown", "job-stateless"}


def held(patient: Patient) -> list[Finding]:
    """Return who keeps others from the tables; while there is somebody, nothing is read there."""
    return [each for each in findings_of((observations,), patient) if each.code == CODE]


def ahead(patient: Patient, obstacles: list[Finding]) -> list[Finding]:
    """Return why nothing else can be examined: one of these obstacles, what lies behind it, or who
    has locked a table."""
    return (hidden(patient, obstacles) or obstacles) if obstacles else held(patient)


def hidden(patient: Patient, found: list[Finding]) -> list[Finding]:
    """Return why something was not found that may be there: its rows are hidden."""
    if not UNSEEN & {each.code for each in found}:
        return []
    seen = findings_of((observations,), patient)
    return [each for each in seen if each.code == HIDDEN and each.severity == PROBLEM]
