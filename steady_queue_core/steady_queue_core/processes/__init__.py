"""The processes: a supervisor, and the workers, dispatchers and scheduler that it forks."""

from __future__ import annotations

from ..errors import ProcessExitError, ProcessMissingError, ProcessPrunedError

__all__ = ["ProcessExitError", "ProcessMissingError", "ProcessPrunedError"]
