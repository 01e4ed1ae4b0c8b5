"""Meaning: what an error that leaves a task means for its job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from .attempt_ending import AttemptEnding


class EndedJob(NamedTuple):
    """What the meaning of an error depends on."""

    job_id: int
    #: The job's ``JobMetadata``, and the options of its backend.
    metadata: Any
    settings: Any
    #: Whether the attempt has noticed that it has lost its claim.
    has_lost_claim: bool = False


class Report(NamedTuple):
    """A log record about a job: its event, and its message, whose values begin with the id of the
    job and the path of its task."""

    event: str
    text: str
    values: tuple[object, ...] = ()


class Meaning(NamedTuple):
    """What becomes of a job, and what is stored and logged of that."""

    #: What the attempt has ended with, or what stands for it.
    error: BaseException
    #: ``None``: it has failed, and the back-off says whether the job runs again.
    ending: AttemptEnding | None = None
    #: Seconds until the job runs again, if it does; ``None``: as the back-off says.
    delay: float | None = None
    #: Changes of the job's metadata.
    changes: Mapping[str, Any] = MappingProxyType({})
    report: Report | None = None


Means = Callable[[BaseException, EndedJob], Meaning | None]
"""Returns what an error means; ``None``: somebody else has to say it."""

Loss = Callable[[BaseException, str, EndedJob], Meaning | None]
"""Returns what it means that an attempt was lost with a process, by an error and the name of that
process; ``None``: a failure like any other."""
