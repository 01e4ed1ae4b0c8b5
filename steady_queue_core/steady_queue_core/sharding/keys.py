"""The shard key of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..arguments.signature import signature_of
from ..compat import InvalidTask, Task
from ..features.keys import text_of_value
from ..features.sharding.calls import OPTION, declared_shard_key, where_of
from ..project_code import contained, text_of
from .options import KeyFunction, ShardingOptions


class ShardKeys:
    """Computes the keys of calls as the options of one backend say. Raises ``ConfigurationError``
    for a function that cannot be imported."""

    def __init__(self, options: ShardingOptions) -> None:
        self.options = options
        self._function: KeyFunction | None = options.load_function()

    def of_call(self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Return the key of a call that fits its task as text. Raises ``InvalidTask``."""
        declared = declared_shard_key(task, args, kwargs)
        if declared is not None:
            return declared
        return text_of_value(self._computed(task, args, kwargs), where_of(task))

    def knows(self, task: Task) -> bool:
        """Whether calls of ``task``, which declares none, may have a key."""
        if self._function is not None:
            return True
        signature = signature_of(task.func, task.takes_context)
        name = self.options.key
        return name is not None and (signature is None or signature.has(name))

    def parameters_of(self, task: Task) -> list[str]:
        """Return the names that ``key`` may have, for calls of ``task`` to have one."""
        signature = signature_of(task.func, task.takes_context)
        return [] if signature is None else signature.names

    def _computed(self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> object:
        if self._function is not None:
            try:
                return contained(self._function, task, list(args), dict(kwargs))
            except Exception as error:
                raise InvalidTask(
                    f"{where_of(task)} could not be computed: {type(error).__name__}: "
                    f"{text_of(error)}. {self.options.key} is called with the task, the list of "
                    "its arguments, and the dict of those that have names."
                ) from error
        signature, name = signature_of(task.func, task.takes_context), self.options.key
        if signature is not None and name is not None:
            try:
                return signature.value_of(name, args, kwargs)
            except LookupError:
                pass
        raise self.unknown(task)

    def unknown(self, task: Task) -> InvalidTask:
        """Return the error for a call without a key."""
        where = f"{self.options.where}['key']"
        reason = f"{where} is None, and the task says nothing itself"
        if self.options.key is not None:
            signature = signature_of(task.func, task.takes_context)
            named = f"{task.func.__name__}{'' if signature is None else signature}"
            reason = f"{where} is {self.options.key!r}, which no argument of {named} is called"
        return InvalidTask(
            f"{where_of(task)} is not known: {reason}. Give its @task a {OPTION}=..., such as a "
            f"function of its arguments, or the call: using({OPTION}=...), or choose a shard: "
            f"using(backend={self.options.shards[0]!r})."
        )
