"""How long a job that has ended is kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, TypeGuard

from ... import arguments
from ...arguments import DeserializationError
from ...durations import LONGEST

#: A job that is kept for so long is never cleared.
FOREVER: Literal["forever"] = "forever"
#: For how long a job is kept.
Period = timedelta | Literal["forever"]

#: The names of the periods in the metadata of a job.
OF_SUCCESS, OF_FAILURE = "retention", "failure_retention"


def is_period(value: object) -> TypeGuard[Period]:
    """Whether ``value`` is a period: a timedelta from 0 to ``LONGEST``, or ``FOREVER``."""
    if isinstance(value, timedelta):
        return timedelta(0) <= value <= LONGEST
    return isinstance(value, str) and value == FOREVER


def of_failure(metadata: object) -> Period | None:
    """Return how long a job with this text as its metadata is kept once it has failed; ``None``: as
    its backend says, also where the text is damaged."""
    try:
        found: Any = None if metadata is None else arguments.decode(
            str(metadata), resolve_models=False
        )  # fmt: skip
    except DeserializationError:
        return None
    period = found.get(OF_FAILURE) if isinstance(found, dict) else None
    return period if is_period(period) else None
