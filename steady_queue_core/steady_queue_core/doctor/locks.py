"""Locks for which readers of the tables may wait as well, the doctor among them."""

from __future__ import annotations

from .database import observations
from .finding import Finding
from .patient import Patient
from .round import findings_of

CODE = "table-locked"


def held(patient: Patient) -> list[Finding]:
    """Return who keeps others from the tables; while there is somebody, nothing is read there."""
    return [each for each in findings_of((observations,), patient) if each.code == CODE]
