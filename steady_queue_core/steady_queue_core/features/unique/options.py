"""Unique jobs: at most one live job for a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict
from uuid import UUID

from django.db.models import Model

from ...compat import InvalidTask, Task
from ...configuration.errors import describe, suggest
from ...durations import LONGEST
from ..former import pickled_in
from ..key_options import CallKey
from ..keys import Key, checked_group
from ..task_field import TaskField
from .key import FINISHED, ON_CONFLICT, REPLACE, STARTED, UNTIL


@dataclass(frozen=True, slots=True, kw_only=True)
class Unique:
    """Lets at most one job at a time have a key: the option ``unique=`` of ``@task``.

    ``key`` is a string, or a callable that gets the arguments of the call and returns a string, a
    number, a UUID, a model instance, or ``None`` if this call need not be unique. Without it, calls
    with the same arguments have the same key. ``group``, by default the path of the task, is a part
    of the key.

    A job has its key ``until`` it is ``"finished"``, successfully or not, or ``"started"``; after a
    success it stays for ``keep`` longer. ``on_conflict`` decides about a call whose key another job
    has: its result is that of the ``"existing"`` job, ``"raise"`` raises ``DuplicateTask``, and
    ``"replace"`` lets the call take the place of a job that has not started. However often it is
    replaced, a job is due at the ``latest`` that long after the first of these calls.

    Raises ``TypeError`` or ``ValueError`` for invalid values.
    """

    key: Key | None = None
    until: Literal["finished", "started"] = "finished"
    keep: timedelta = timedelta(0)
    on_conflict: Literal["existing", "raise", "replace"] = "existing"
    group: str | None = None
    latest: timedelta | None = None

    if not TYPE_CHECKING:

        def __new__(cls, *args, **options):
            """Name the nearest option in place of one that there is not."""
            valid = cls.__dataclass_fields__
            unknown = next((name for name in options if name not in valid), None)
            if unknown is not None:
                raise TypeError(f"Unique: unknown option {unknown!r}; {suggest(unknown, valid)}")
            return object.__new__(cls)

    def __post_init__(self) -> None:
        key: object = self.key
        if key is not None and not isinstance(key, str) and not callable(key):
            raise TypeError(f"Unique: key must be a string or a callable, not {_kind(key)}")
        if key == "":
            raise ValueError("Unique: key is empty; leave it out to use all arguments")
        _require("until", self.until, UNTIL)
        _require("on_conflict", self.on_conflict, ON_CONFLICT)
        keep: object = self.keep
        if not isinstance(keep, timedelta):
            raise TypeError(f"Unique: keep must be a timedelta, not {_kind(keep)}")
        if not timedelta(0) <= keep <= LONGEST:
            raise ValueError(f"Unique: keep must be from 0 to {LONGEST.days} days, not {keep}")
        if keep and self.until == STARTED:
            raise ValueError(
                f"Unique: keep counts from the end of a job, and goes only with until={FINISHED!r}"
            )
        checked_group(self.group, "Unique")
        self._check_latest()

    def _check_latest(self) -> None:
        latest: object = self.latest
        if latest is None:
            return
        if not isinstance(latest, timedelta):
            raise TypeError(f"Unique: latest must be a timedelta, not {_kind(latest)}")
        if not timedelta(0) < latest <= LONGEST:
            raise ValueError(
                f"Unique: latest must be more than 0 and at most {LONGEST.days} days, not {latest}"
            )
        if self.on_conflict != REPLACE:
            raise ValueError(
                "Unique: latest bounds how long a job is put off by calls that replace it, and "
                f"goes only with on_conflict={REPLACE!r}"
            )


def checked_unique(unique: object) -> Unique:
    """Return the option of a task; ``True`` is ``Unique()``. Raises ``InvalidTask`` for anything
    else."""
    if isinstance(unique, Unique):
        return unique
    if unique is True:
        return Unique()
    raise InvalidTask(
        f"unique must be True or steady_queue_core.Unique(...), not {describe(unique)}. True makes "
        "calls with the same arguments one job."
    )


def checked_call_key(key: object, where: str) -> Key:
    """Return the key that is given for one call. Raises ``InvalidTask`` that names ``where``."""
    if not isinstance(key, str | int | UUID | Model):
        raise InvalidTask(
            f"{where}: unique_key must be a string, a number, a UUID or a model instance, not "
            f"{describe(key)}."
        )
    if key == "":
        raise InvalidTask(f"{where}: unique_key is empty. Leave it out to use all arguments.")
    return key if isinstance(key, str) else _Given(key)


@dataclass(frozen=True, slots=True)
class _Given:
    """The key of one call, whatever its arguments are."""

    key: object

    def __call__(self, /, *args: object, **kwargs: object) -> object:
        return self.key


def _require(name: str, value: object, valid: Sequence[str]) -> None:
    if not any(value == each for each in valid):
        raise ValueError(f"Unique: {name} {value!r} is not valid; {suggest(value, valid)}")


def _kind(value: Any) -> str:
    return type(value).__name__


class TaskOptions(TypedDict, total=False):
    """What ``@task`` takes."""

    unique: Unique | Literal[True] | None


class CallOptions(TaskOptions, total=False):
    """What ``using()`` takes."""

    unique_key: CallKey | None


@dataclass(frozen=True, kw_only=True)
class UniqueField:
    """What a task keeps."""

    __slots__ = ()

    #: Which of its calls are one job; ``None``: none.
    unique: Unique | None = None


def _of_call(options: Mapping[str, Any], task: Task) -> Unique | None:
    unique, key = options.get("unique"), options.get("unique_key")
    given = None if unique is None else checked_unique(unique)
    if key is None:
        return given
    known: Unique = given or getattr(task, "unique", None) or Unique()
    return replace(known, key=checked_call_key(key, task.module_path))


pickled_in("steady_queue_core.unique", Unique, _Given)

FIELD = TaskField("unique", checked_unique, _of_call)
