"""What the features declare: the options of tasks and calls, and the facts that a job keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..compat import Task
from .batches.facts import BatchFacts, PlaceFacts
from .callbacks.options import OPTIONS as CALLBACKS
from .callbacks.options import CallbackFacts, CallbackOptions, require_declared_options
from .concurrency.limit import ConcurrencyField
from .delivery.options import OPTIONS as DELIVERY
from .delivery.options import (
    DeliveryDefaults,
    DeliveryFacts,
    DeliveryOptions,
    require_deliverable,
)
from .endings.options import OPTIONS as ENDINGS
from .endings.options import EndingDefaults, EndingFacts, EndingOptions
from .expiry import options as expiry
from .fact import facts_of
from .fair import calls as fair
from .fair.facts import FairFacts
from .fair.queues import FairQueueOptions
from .headers.facts import HeaderFacts
from .option import Option
from .queue_limits.options import QueueLimitOptions
from .rates.facts import RateFacts
from .rates.limit import RateField
from .retention.options import OPTIONS as RETENTION
from .retention.options import RetentionFacts, RetentionOptions
from .schedules.facts import ScheduleFacts
from .sharding import calls as sharding
from .task_field import TaskField
from .time_limits.options import OPTIONS as TIME_LIMITS
from .time_limits.options import (
    TimeLimitDefaults,
    TimeLimitFacts,
    TimeLimitFields,
    TimeLimitOptions,
    require_time_limit,
)
from .unique import options as unique
from .unique.facts import UniqueFacts

#: Wrong values are told of in this order.
OPTIONS: tuple[Option, ...] = (
    *ENDINGS,
    *DELIVERY,
    *expiry.OPTIONS,
    *RETENTION,
    *TIME_LIMITS,
    *CALLBACKS,
)
#: Raise ``InvalidTask`` for the options of a task, which is declared or called, that do not go
#: together, ask which tasks are declared, or say where they stand.
OPTION_CHECKS = (require_declared_options,)
#: Raise ``InvalidTask`` for a task with facts that does not fit the options of its backend.
TASK_CHECKS: tuple[Callable[[Task, Any, Callable[[str], object]], None], ...] = (
    require_time_limit,
    require_deliverable,
)
#: What a task keeps in fields of its own.
FIELDS: tuple[TaskField, ...] = (unique.FIELD, fair.FIELD, sharding.FIELD)
#: The limits that decorators declare: a task with others is another one.
LIMITS = ("concurrency", "rate")
BY_NAME = {option.name: option for option in OPTIONS}
#: Those that may not fit a call, and those that backends have, too.
DEMANDING = tuple(option for option in OPTIONS if option.require is not None)
DEFAULTED = tuple(option for option in OPTIONS if option.has_default)


class OfBoth(
    EndingOptions, DeliveryOptions, RetentionOptions, TimeLimitOptions, CallbackOptions, total=False
):
    """The options that ``@task`` and ``using()`` take alike."""


class TaskOptions(
    OfBoth,
    expiry.TaskOptions,
    unique.TaskOptions,
    fair.TaskOptions,
    sharding.TaskOptions,
    total=False,
):
    """Those of ``@task``."""


class CallOptions(
    OfBoth,
    expiry.CallOptions,
    unique.CallOptions,
    fair.CallOptions,
    sharding.CallOptions,
    total=False,
):
    """Those of ``using()``."""


@dataclass(frozen=True, kw_only=True)
class TaskFields(
    TimeLimitFields,
    sharding.ShardField,
    fair.FairField,
    unique.UniqueField,
    RateField,
    ConcurrencyField,
):
    """What a task keeps of its features, beside what its jobs keep."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class BackendOptions(
    FairQueueOptions,
    QueueLimitOptions,
    TimeLimitDefaults,
    expiry.ExpiryDefaults,
    DeliveryDefaults,
    EndingDefaults,
):
    """What a backend says of its features."""


# Pickles of tasks, which caches may hold, have the values in the order of the fields: from the last
# of these rooms to the first, which is where a new one belongs.
@dataclass(frozen=True, kw_only=True)
class Facts(
    HeaderFacts,
    PlaceFacts,
    ScheduleFacts,
    CallbackFacts,
    FairFacts,
    BatchFacts,
    RateFacts,
    UniqueFacts,
    TimeLimitFacts,
    RetentionFacts,
    expiry.ExpiryFacts,
    DeliveryFacts,
    EndingFacts,
):
    """What a job keeps of its features."""

    __slots__ = ()


FACTS = facts_of(Facts)
#: What the queue changes while a job lives, and what signatures do not cover.
CHANGING = frozenset(name for name, fact in FACTS.items() if fact.changes)
UNSIGNED = frozenset(name for name, fact in FACTS.items() if not fact.is_signed)
