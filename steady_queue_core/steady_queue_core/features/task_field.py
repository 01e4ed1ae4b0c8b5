"""TaskField: an option that a task keeps in a field of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..compat import Task


class TaskField(NamedTuple):
    """An option whose value the task holds, for what it means for a call depends on that."""

    name: str
    #: Returns what ``@task`` takes in the form in which a task keeps it. Raises ``InvalidTask``.
    of_task: Callable[[Any], Any]
    #: Returns the value that the options of ``using()`` give a task; ``None``: they give none.
    #: Raises ``InvalidTask``.
    of_call: Callable[[Mapping[str, Any], Task], Any]
