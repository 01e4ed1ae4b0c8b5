"""The doctor: why the queue, or a job, is not running, with the cause first and a remedy."""

from __future__ import annotations

from .examine import examine, examine_job
from .finding import Finding

__all__ = ["Finding", "examine", "examine_job"]
