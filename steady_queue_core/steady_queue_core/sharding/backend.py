"""The task backend that stores calls in one of several others, by a key of their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from django.core.checks import CheckMessage, Error

from ..arguments import PayloadLimits
from ..arguments.signature import require_fit
from ..backend import SteadyQueueBackend
from ..compat import BaseTaskBackend, InvalidTask, Task, TaskResult, TaskResultDoesNotExist
from ..configuration import ConfigurationError
from ..encoded_call import EncodedCall
from ..features.keys import text_of_value
from ..payloads import PayloadCodec
from ..tasks import current_batch
from ..tasks.definition import SteadyQueueTask
from ..tasks.validation import require_datetime, require_valid, with_any_context
from . import members, routing
from .keys import ShardKeys
from .options import ShardingOptions
from .problems import problems_of
from .results import joined, parts, seen_from
from .storing import require_room, store
from .variants import Variants


class ShardedBackend(BaseTaskBackend):
    """Stores each call in one of its shards, which are other backends in ``TASKS`` with a database
    each, and finds the results again.

    ``ShardingOptions`` documents its ``OPTIONS``. Everything else about jobs is said by the options
    of the shards.
    """

    task_class = SteadyQueueTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.alias = alias
        self._variants = Variants()

    @cached_property
    def settings(self) -> ShardingOptions:
        """The parsed ``OPTIONS``; raises ``ConfigurationError``."""
        return ShardingOptions.parse(self.alias, self.options)

    @cached_property
    def keys(self) -> ShardKeys:
        """What computes the keys of calls; raises ``ConfigurationError``."""
        return ShardKeys(self.settings)

    @property
    def members(self) -> list[SteadyQueueBackend]:
        """All shards, also those that get no more calls. Raises ``ConfigurationError``."""
        return [self.member(alias) for alias in self.settings.members]

    def member(self, alias: str) -> SteadyQueueBackend:
        """Return the shard of this alias. Raises ``ConfigurationError``."""
        return members.member(self.settings, alias)

    def shard_for(self, key: object) -> SteadyQueueBackend:
        """Return the shard that stores calls with this key: a string, a number, a UUID or a model
        instance.

        Raises ``InvalidTask`` for anything else, and ``ConfigurationError``.
        """
        where = f"The shard key for TASKS[{self.alias!r}]"
        return self._shard_of_key(text_of_value(key, where))

    def shard_of_call(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> SteadyQueueBackend:
        """Return the shard that stores a call which fits its task: that of the open batch, or that
        of its key.

        Raises ``InvalidTask`` if the key could not be computed, and ``ConfigurationError``.
        """
        found = self._shard_of_open_batch()
        if found is not None:
            return found
        return self._shard_of_key(self.keys.of_call(task, args, kwargs))

    def shard_for_batch(self, key: object) -> SteadyQueueBackend:
        """Return the shard of a new batch: that of the open one, or that of the key.

        Raises ``InvalidTask`` if there is neither.
        """
        found = self._shard_of_open_batch()
        if found is not None:
            return found
        if key is None:
            names = " or ".join(map(repr, self.settings.shards))
            raise InvalidTask(
                f"TASKS[{self.alias!r}] has several shards, and all of a batch is in one of them. "
                f"Choose it by a key, shard_key=..., or by its name: backend={names}."
            )
        return self.shard_for(key)

    def shard_beside(self, backend: Any) -> str | None:
        """Return the shard whose jobs are stored together with those of ``backend``: this one, or
        that of its database; ``None``: there is none."""
        if backend.alias in self.settings.members:
            return str(backend.alias)
        if not getattr(backend, "stores_jobs", False):
            return None
        found = self._shard_on(backend.database)
        return None if found is None else found.alias

    def _shard_of_open_batch(self) -> SteadyQueueBackend | None:
        open_batch = current_batch.current()
        return None if open_batch is None else self._shard_on(open_batch.using)

    def _shard_of_key(self, key: str) -> SteadyQueueBackend:
        return self.member(routing.shard_of(key, self.settings.shards))

    def _shard_on(self, using: str) -> SteadyQueueBackend | None:
        stored = (each for each in self.members if each.stores_jobs and each.database == using)
        return next(stored, None)

    def validate_task(self, task: Task) -> None:
        """Raise ``InvalidTask`` unless this backend and its shards can run ``task``."""
        require_datetime(task)
        super().validate_task(with_any_context(task))
        require_valid(task)
        try:
            shards = self.members
        except ConfigurationError:  # For the system checks to report, not for a declaration.
            return
        for shard in shards:
            try:
                shard.validate_task(self._variants.of(task, shard.alias))
            except InvalidTask as error:
                raise InvalidTask(f"The shard {shard.alias!r} refuses it: {error}") from error

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Store a call of ``task`` in its shard, in the caller's transaction on that database if
        there is one.

        Raises what ``SteadyQueueBackend.enqueue`` raises, and ``InvalidTask`` for a call without a
        shard key.
        """
        [result] = self.store([self.encode(task, args, kwargs)])
        return result

    def encode(
        self, task: Task, args: Any, kwargs: Any, *, intended_time: datetime | None = None
    ) -> EncodedCall:
        """Validate a call and return it in the stored form of its shard, whose task it is of."""
        require_fit(task, args, kwargs)
        shard = self.shard_of_call(task, args, kwargs)
        placed = self._variants.of(task, shard.alias)
        return shard.encode(placed, args, kwargs, intended_time=intended_time)

    def store(self, calls: Sequence[EncodedCall]) -> list[TaskResult]:
        """Store encoded calls, those of one shard all or none. Raises ``PartlyEnqueued``."""
        return store(self.settings, calls)

    def require_room(self, calls: Sequence[EncodedCall], *, keep: bool = True) -> None:
        """Take room in the queues of encoded calls, and ``keep`` it. Raises ``QueueFull``."""
        require_room(self.settings, calls, keep=keep)

    def place_of(self, result_id: str) -> tuple[SteadyQueueBackend, str]:
        """Return the backend that has the job of a result, and its id there.

        Raises ``TaskResultDoesNotExist`` if there can be none. The backend need not be a shard any
        more.
        """
        named = parts(result_id)
        shard = None if named is None else members.storing(named[0])
        if named is None or shard is None:
            raise TaskResultDoesNotExist(result_id)
        return shard, named[1]

    def result_id_of(self, shard: str, job_id: str) -> str:
        """Return the id by which ``get_result()`` finds a job of the backend ``shard``."""
        return joined(shard, job_id)

    def get_result(self, result_id: str) -> TaskResult:
        """Return the current result of a job. Raises ``TaskResultDoesNotExist``."""
        shard, job_id = self.place_of(result_id)
        return seen_from(self.alias, shard, shard.get_result(job_id))

    def cancel(self, result_id: str) -> bool:
        """Cancel the job of a result; return whether it was waiting or running.

        Raises ``TaskResultDoesNotExist``.
        """
        shard, job_id = self.place_of(result_id)
        return shard.cancel(job_id)

    @property
    def payload_limits(self) -> PayloadLimits:
        """The size limits of the first shard, for rows that name no backend that there is."""
        return self.members[0].payload_limits

    @property
    def payload_codec(self) -> PayloadCodec | None:
        """What opens payloads of the first shard that seals them, for rows that name no backend
        that there is: they must not name themselves out of a signature."""
        codecs = (shard.payload_codec for shard in self.members)
        return next((codec for codec in codecs if codec is not None), None)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """Report wrong ``OPTIONS`` and shards."""
        try:
            found = list(problems_of(self.settings, self.queues))
        except ConfigurationError as error:
            found = error.problems
        return [Error(each, id="steady_queue.E004") for each in found]
