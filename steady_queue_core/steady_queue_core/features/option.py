"""Option: what tasks and calls may say, and a job keeps as a fact of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..compat import Task

#: Returns the stored form of a value. Raises ``InvalidTask``, or ``TaskArgumentError``, that names
#: the place in the second argument.
Check = Callable[[Any, str], Any]


class Option(NamedTuple):
    """An option that jobs keep in their metadata."""

    #: As it is given to ``@task`` and ``using()``, and found in the metadata.
    name: str
    #: What ``using()`` takes.
    of_call: Check
    #: What ``@task`` takes; ``None``: a task keeps it in a field of its own.
    of_task: Check | None
    #: Raises ``InvalidTask`` if a value does not fit a call of a task; the string names the setting
    #: that it comes from.
    require: Callable[[Any, Task, str], None] | None = None
    #: Whether a backend has an option of this name, for jobs that say nothing of it.
    has_default: bool = False
    #: What a job says that is to do without, whatever its backend says.
    off: object = None
    #: Whether a copy of the job, which is enqueued later, has this value, too.
    is_copied: Callable[[Any], bool] = lambda value: True
