"""The processes: a supervisor, and the workers, dispatchers and scheduler that it starts."""

from __future__ import annotations

from ..errors import (
    ProcessExitError,
    ProcessMissingError,
    ProcessPrunedError,
    ThreadTerminatedError,
)

__all__ = [
    "ProcessExitError",
    "ProcessMissingError",
    "ProcessPrunedError",
    "ThreadTerminatedError",
]
