"""Refusal: why a job with some option must not start any more."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple


class Refusal(NamedTuple):
    """What is asked of a job that was claimed, and once more when it is about to start."""

    #: The name of the option in the metadata of the job.
    option: str
    #: Returns the error of a job with this value, which was enqueued at the first instant, if it
    #: must not start at the second one.
    of: Callable[[Any, datetime, datetime], Exception | None]
