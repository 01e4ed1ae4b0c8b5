"""The doctor: why the queue, or a job, is not running, with the cause first and a remedy.

Each module looks at one thing, with functions that take the ``Patient`` and yield findings;
``codes.py`` says which of these explain more than others.
"""

from __future__ import annotations

from .examine import examine, examine_job
from .finding import Finding

__all__ = ["Finding", "examine", "examine_job"]
