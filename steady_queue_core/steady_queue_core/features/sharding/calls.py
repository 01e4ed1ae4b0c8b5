"""The shard key that a task declares for its calls, in place of the one of its backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from ...compat import Task
from ..key_options import CallKeyOption, key_field
from ..keys import Key, text_of

OPTION = "shard_key"


class TaskOptions(TypedDict, total=False):
    """What ``@task`` takes."""

    shard_key: Key | None


class CallOptions(TypedDict, total=False):
    """What ``using()`` takes."""

    shard_key: CallKeyOption | None


@dataclass(frozen=True, kw_only=True)
class ShardField:
    """What a task keeps."""

    __slots__ = ()

    #: The key that decides about the shard of a call, or what computes it from the arguments;
    #: ``None``: that of its sharded backend.
    shard_key: Key | None = None


FIELD = key_field(OPTION, none="")


def declared_shard_key(task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Return the shard key of a call as ``task`` declares it; ``None``: it declares none.

    Raises ``InvalidTask`` if it could not be computed.
    """
    key: Key | None = getattr(task, OPTION, None)
    if key is None:
        return None
    return text_of(key, args, kwargs, where_of(task), none="", option=OPTION)


def where_of(task: Task) -> str:
    """Return how messages begin that are about the key of a call of ``task``."""
    return f"The shard key of {task.module_path}"
