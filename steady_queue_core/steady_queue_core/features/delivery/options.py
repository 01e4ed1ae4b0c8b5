"""Delivery: what becomes of a job that was interrupted, and when its task takes effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Literal, TypedDict

from ...compat import InvalidTask, Task
from ...configuration.errors import suggest
from ...configuration.option_fields import integer, option, optional
from ...configuration.reader import Reader
from ..calls import NOTHING, Facts
from ..fact import are_texts, fact, is_count
from ..option import Option

Delivery = Literal["at_most_once", "at_least_once", "transactional"]

#: A start is never repeated.
AT_MOST_ONCE: Delivery = "at_most_once"
#: An attempt that is lost with its process counts as none.
AT_LEAST_ONCE: Delivery = "at_least_once"
#: The task and its outcome are one transaction.
TRANSACTIONAL: Delivery = "transactional"
MODES: tuple[Delivery, ...] = (AT_MOST_ONCE, AT_LEAST_ONCE, TRANSACTIONAL)

MOST_CRASHES = 1000


def checked_mode(mode: object, where: str) -> Delivery:
    """Return a mode. Raises ``InvalidTask`` that names ``where``, and the nearest mode."""
    for known in MODES:
        if mode == known:
            return known
    raise InvalidTask(f"{where}: delivery {mode!r} is not valid; {suggest(mode, MODES)}")


def checked_crashes(most: object, where: str) -> int:
    """Return a number of crashes. Raises ``InvalidTask`` that names ``where``."""
    if type(most) is not int or not 1 <= most <= MOST_CRASHES:
        raise InvalidTask(
            f"{where}: max_crashes must be a whole number from 1 to {MOST_CRASHES}, not {most!r}."
        )
    return most


def require_deliverable(task: Task, facts: Any, default: Callable[[str], object]) -> None:
    """Raise ``InvalidTask`` if ``task``, which has these ``facts``, cannot be delivered as it says
    itself, or as the ``default`` of its backend does."""
    mode, max_crashes = facts.delivery or default("delivery"), facts.max_crashes
    attempts = getattr(task, "max_attempts", None)
    if mode == AT_MOST_ONCE and attempts not in (None, 1):
        raise InvalidTask(
            f"max_attempts must be 1 with delivery='at_most_once', not {attempts}: a second "
            "attempt is a second start. Leave it out, or choose another delivery."
        )
    if mode == AT_MOST_ONCE and facts.max_snoozes:
        raise InvalidTask(
            "max_snoozes does not go with delivery='at_most_once': a job that comes back starts "
            "again. Leave it out, or choose another delivery."
        )
    if mode == TRANSACTIONAL and iscoroutinefunction(task.func):
        raise InvalidTask(
            "A coroutine cannot be delivered 'transactional': coroutines share a connection, and "
            "so their transactions. Declare a function instead."
        )
    if max_crashes is not None and mode != AT_LEAST_ONCE:
        raise InvalidTask(
            "max_crashes belongs to delivery='at_least_once': otherwise each crash uses up an "
            "attempt. Choose that delivery, or leave it out."
        )


def delivery_of(task: Task, backend: Any) -> str | None:
    """Return the delivery of the jobs of ``task``; ``None``: what is usual."""
    facts: Any = getattr(task, "job_metadata", None)
    own: str | None = None if facts is None else facts.delivery
    default: str | None = backend.settings.delivery
    return default if own is None else own


def at_call(call: Any, backend: Any) -> Facts:
    """Let a call have one attempt if its task says that its jobs start at most once. A backend that
    says so has one attempt for all."""
    if call.task.job_metadata.delivery == AT_MOST_ONCE:
        call.max_attempts = 1
    return NOTHING


class DeliveryOptions(TypedDict, total=False):
    """What ``@task`` and ``using()`` take."""

    delivery: Delivery | None
    max_crashes: int | None


def _read_mode(reader: Reader, name: str) -> str:
    mode = reader.choice(name, MODES)
    if mode == AT_MOST_ONCE and reader.values["max_attempts"] != 1:
        reader.problems.append(
            f"{reader.path('max_attempts')}: must be 1, or left out, with the delivery "
            f"{AT_MOST_ONCE!r}: a second attempt is a second start"
        )
    return mode


@dataclass(frozen=True, kw_only=True)
class DeliveryDefaults:
    """What a backend says for jobs that do not say it themselves."""

    delivery: str | None = option(None, optional(_read_mode))
    """What becomes of interrupted jobs, unless their task says so itself; see ``delivery``."""
    max_crashes: int = option(5, integer(1, MOST_CRASHES))
    """How many processes a job that is delivered at least once may take along, unless its task
    says so itself."""


@dataclass(frozen=True, kw_only=True)
class DeliveryFacts:
    """What a job keeps."""

    __slots__ = ()

    #: What becomes of the job if it is interrupted; ``None``: what is usual.
    delivery: str | None = fact(is_valid=lambda value: value in MODES)
    #: How many processes the job may take along; ``None``: as many as its backend says.
    max_crashes: int | None = fact(is_valid=is_count)
    #: The processes that have ended while they ran the job, if it is delivered at least once.
    crashes: tuple[str, ...] = fact((), is_valid=are_texts, changes=True)


OPTIONS = (
    Option("delivery", checked_mode, checked_mode, has_default=True),
    Option("max_crashes", checked_crashes, checked_crashes),
)
