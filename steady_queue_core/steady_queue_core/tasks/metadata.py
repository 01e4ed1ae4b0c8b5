"""The metadata of a job: what is stored of a call beyond the columns, for jobs that have any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from .. import arguments
from ..arguments import DeserializationError, PayloadLimits, TaskArgumentError
from ..compat import InvalidTask
from ..dialects import ClaimedJob, FairKey, JobKey, JobRate, Link
from ..features import declared
from ..features.expiry.options import Expires, deadline_of
from ..features.option import Option, is_count
from ..features.retention.period import Period
from ..features.time_limits.options import Timeout
from .headers import are_headers, checked_headers

#: Of how many metadata what they mean is remembered, and how long these may be: a job's are read at
#: its claim, where its task runs and when it ends, and many jobs have the same.
MOST_REMEMBERED, LONGEST_REMEMBERED = 1024, 500

#: The name under which a result shows why its task has discarded itself.
DISCARDED = "discarded"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMetadata:
    """What a job keeps in its ``metadata`` column, as a JSON object without what is not set."""

    #: What the caller has passed with ``metadata=``.
    user: Mapping[str, Any] = field(default_factory=dict, hash=False)
    #: How often the job may snooze; ``None``: as often as its backend says.
    max_snoozes: int | None = None
    #: How often the job has snoozed.
    snoozes: int = 0
    #: Why the task has discarded itself.
    discarded: str | None = None
    #: What becomes of the job if it is interrupted; see ``steady_queue_core.delivery``.
    delivery: str | None = None
    #: How many processes the job may take along; ``None``: as many as its backend says.
    max_crashes: int | None = None
    #: The processes that have ended while they ran the job, if it is delivered at least once.
    crashes: tuple[str, ...] = ()
    #: By when the job has to start; ``None``: as its backend says.
    expires: Expires | None = None
    #: How long the job is kept after its success, and after its failure; ``None``: as long as its
    #: backend says.
    retention: Period | None = None
    failure_retention: Period | None = None
    #: How long an attempt may take, and how much longer if it does not end then, in seconds;
    #: ``None``: as its task or backend says.
    timeout: Timeout | None = None
    timeout_grace: float | None = None
    #: The values of the job's unique key; see ``dialects.JobKey``.
    unique: tuple[Any, ...] | None = None
    #: The values of the job's rate limit; see ``dialects.JobRate``.
    rate: tuple[Any, ...] | None = None
    #: The slot of the next start, in microseconds since 1970, and the attempts before it.
    slot: tuple[int, int] | None = None
    #: The values of what the job has to do with a batch; see ``dialects.Link``.
    batch: tuple[Any, ...] | None = None
    #: The job's key in a fair queue; see ``dialects.FairKey``.
    fair: str | None = None
    #: What is enqueued once the job has succeeded, and once it has failed for good: the values of
    #: a ``Callback``; of a task, also a path alone.
    on_success: str | tuple[Any, ...] | None = None
    on_failure: str | tuple[Any, ...] | None = None
    #: The slot of the schedule that the job was enqueued for, if its task takes a context.
    intended_time: datetime | None = None
    #: The place of the job in its graph, and which places the results that its arguments refer to
    #: come from, by their numbers; see ``batches.places``. Only where payloads are signed.
    node: str | None = None
    sources: Mapping[str, Any] = field(default_factory=dict, hash=False)
    #: What middleware has given the job on its way; see ``tasks.headers``.
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)

    @classmethod
    def read(cls, text: object) -> JobMetadata:
        """Return the metadata of a row, without what is damaged."""
        if text is None:
            return NONE
        # SQLite lets a row hold something other than text.
        stored = str(text)
        return _remembered(stored) if len(stored) <= LONGEST_REMEMBERED else _read(stored)

    def text(self, limits: PayloadLimits = arguments.DEFAULT_LIMITS) -> str | None:
        """Return the stored form, or ``None`` if nothing is set.

        Raises ``TaskArgumentError`` if it is too large.
        """
        # Calls of one batch or task have the same, unless they say something of their own.
        own = (self.unique, self.slot, self.intended_time, self.fair or None, self.node)
        is_shared = not (self.user or self.headers) and all(each is None for each in own)
        return _shared_text(self, limits) if is_shared else self._text(limits)

    def _text(self, limits: PayloadLimits) -> str | None:
        values = {name: value for name, unset in _UNSET if (value := getattr(self, name)) != unset}
        return arguments.encode(values, limits=limits, root="metadata") if values else None

    def with_options(
        self, options: Mapping[str, Any], where: str, *, of_call: bool = False
    ) -> JobMetadata:
        """Return these metadata with the ``options`` that are given to ``@task`` or, if
        ``of_call``, to ``using()``.

        Raises ``InvalidTask`` that names ``where``, and ``TaskArgumentError``.
        """
        changes: dict[str, Any] = {}
        for option in (USER, *declared.OPTIONS):
            check = option.of_call if of_call else option.of_task or option.of_call
            if (value := options.get(option.name)) is not None:
                changes[FIELDS.get(option.name, option.name)] = check(value, where)
        return replace(self, **changes)

    def carrying(self, headers: Mapping[str, str]) -> JobMetadata:
        """Return these metadata with ``headers`` beside those that there are, or in their place.
        Raises ``ValueError``."""
        return replace(self, headers=checked_headers({**self.headers, **headers}))

    def replaced_by(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a job keeps in place of these, by the names of options, if its backend has
        these ``defaults`` for jobs that do not say these themselves."""
        changes: dict[str, Any] = {}
        for option in declared.DEFAULTED:
            own = getattr(self, option.name)
            value = defaults.get(option.name) if own is None else own
            if (value := None if value == option.off else value) != own:
                changes[option.name] = value
        return changes

    def deadline(self, enqueued_at: datetime) -> datetime | None:
        """Return when a job expires that was enqueued then; ``None``: never."""
        return deadline_of(self.expires, enqueued_at)

    @property
    def unique_key(self) -> JobKey | None:
        """The unique key of the job."""
        return JobKey.of(self.unique)

    @property
    def rate_limit(self) -> JobRate | None:
        """The rate limit of the job."""
        return JobRate.of(self.rate)

    def slot_of(self, attempts: int) -> int | None:
        """Return the slot that the job has, after so many attempts."""
        return self.slot[0] if self.slot is not None and self.slot[1] == attempts else None

    @property
    def shown(self) -> dict[str, Any]:
        """What a result and a context show."""
        shown = deepcopy(dict(self.user))  # Others look at the same.
        return shown if self.discarded is None else shown | {DISCARDED: self.discarded}


def _read(text: str) -> JobMetadata:
    try:
        found = arguments.decode(text, resolve_models=False)
    except DeserializationError:
        return NONE
    known = found if isinstance(found, dict) else {}
    return JobMetadata(**{
        name: known[name] for name, is_valid in _VALID.items()
        if name in known and is_valid(known[name])
    })  # fmt: skip


_remembered = lru_cache(maxsize=MOST_REMEMBERED)(_read)


@lru_cache(maxsize=MOST_REMEMBERED)
def _shared_text(metadata: JobMetadata, limits: PayloadLimits) -> str | None:
    return metadata._text(limits)


def delivery_of(claim: ClaimedJob) -> str | None:
    """Return the delivery of a claimed job; ``None`` for most."""
    return None if claim.metadata is None else JobMetadata.read(claim.metadata).delivery


def _checked_metadata(metadata: object, where: str) -> dict[str, Any]:
    if not isinstance(metadata, dict) or not all(isinstance(name, str) for name in metadata):
        raise InvalidTask(f"{where}: metadata must be a dict with strings as keys.")
    if DISCARDED in metadata:
        raise InvalidTask(
            f"{where}: the key {DISCARDED!r} of metadata is reserved: it tells why a task has "
            "discarded itself. Choose another one."
        )
    text = arguments.encode(metadata, root="metadata")
    if arguments.has_models(text):
        raise TaskArgumentError(
            "metadata cannot be stored: there is a model instance in it. Pass its primary key."
        )
    # A copy: nobody changes it afterwards.
    copy: dict[str, Any] = arguments.decode(text, resolve_models=False)
    return copy


def _are_texts(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, str) for each in value)


def _is_user(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value)


#: What the caller passes on with a job, and the name under which it is kept.
USER = Option("metadata", _is_user, _checked_metadata, _checked_metadata)
FIELDS = {USER.name: "user"}

_VALID: dict[str, Callable[[Any], bool]] = {
    "user": _is_user,
    **{option.name: option.is_valid for option in declared.OPTIONS},
    "snoozes": is_count,
    "discarded": lambda value: isinstance(value, str),
    "crashes": _are_texts,
    "unique": lambda value: JobKey.of(value) is not None,
    "rate": lambda value: JobRate.of(value) is not None,
    "slot": lambda value: isinstance(value, tuple) and [type(each) for each in value] == [int, int],
    "batch": lambda value: Link.of(value) is not None,
    "fair": lambda value: FairKey.of(value) is not None,
    "intended_time": lambda value: isinstance(value, datetime) and value.utcoffset() is not None,
    "node": lambda value: isinstance(value, str),
    "sources": lambda value: isinstance(value, dict),
    "headers": are_headers,
}

#: The metadata of a job that has none.
NONE = JobMetadata()
#: Each name, and what it holds if it is not set.
_UNSET = tuple((each.name, getattr(NONE, each.name)) for each in fields(NONE))
#: The options of ``@task`` that are stored in the metadata.
OPTIONS = tuple(option.name for option in (USER, *declared.OPTIONS) if option.of_task is not None)
