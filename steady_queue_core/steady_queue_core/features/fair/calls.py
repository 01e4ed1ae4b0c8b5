"""The fair key of a task, and that of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from ...compat import Task
from ..calls import NOTHING, Facts
from ..key_options import CallKeyOption, key_field
from ..keys import Key, shortened, text_of
from .key import NAME
from .of_database import fair_queues_in

OPTION = "fair_key"
#: What ``None`` means for a key.
NO_KEY = "a job without a key"


class TaskOptions(TypedDict, total=False):
    """What ``@task`` takes."""

    fair_key: Key | None


class CallOptions(TypedDict, total=False):
    """What ``using()`` takes."""

    fair_key: CallKeyOption | None


@dataclass(frozen=True, kw_only=True)
class FairField:
    """What a task keeps."""

    __slots__ = ()

    #: The key of a job in a fair queue, or what computes it from the arguments; ``None``: it has
    #: none.
    fair_key: Key | None = None


FIELD = key_field(OPTION, NO_KEY)


def is_fair(backend: Any, queue_name: str) -> bool:
    """Whether a queue of a backend shares its workers fairly among the keys of its jobs."""
    # The queues of a database are fair for all backends that use it.
    in_database = backend.stores_jobs
    found = fair_queues_in(backend.database) if in_database else backend.settings.fair_queues
    return found is not None and found.weight_of(queue_name) is not None


def at_call(call: Any, backend: Any) -> Facts:
    """Give a call in a fair queue its key, which its job keeps, too. Raises ``InvalidTask``."""
    if not is_fair(backend, call.task.queue_name):
        return NOTHING
    call.fair_key = fair_key_of_call(call.task, call.args, call.kwargs)
    return {NAME: call.fair_key}


def fair_key_of_call(task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the fair key of a call of ``task``, as it is stored; of one without a key, ``""``.

    Raises ``InvalidTask`` if it could not be computed.
    """
    key: Key | None = getattr(task, OPTION, None)
    if key is None:
        return ""
    where = f"The fair key of {task.module_path}"
    return shortened(text_of(key, args, kwargs, where, NO_KEY, option=OPTION) or "")
