"""Results of the jobs that a job has waited for, as its arguments refer to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: More parents than any job has.
MOST = 2**31


@dataclass(frozen=True, slots=True)
class ParentResult:
    """Stands for the result of a member that the job waits for, until the job runs."""

    #: Of the dependency; see ``models.Dependency.number``.
    number: int


def read(stored: Any) -> ParentResult:
    """Return the reference that is stored as a number.

    :raises ValueError: ``stored`` is none
    """
    if type(stored) is not int or not 0 <= stored < MOST:
        raise ValueError("not a number of a dependency")
    return ParentResult(stored)
