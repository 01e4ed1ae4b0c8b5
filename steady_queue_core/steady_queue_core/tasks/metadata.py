"""The metadata of a job: what is stored of a call beyond the columns, for jobs that have any."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from .. import arguments
from ..arguments import DeserializationError, PayloadLimits, TaskArgumentError
from ..compat import InvalidTask
from ..dialects import ClaimedJob
from ..features import declared
from ..features.fact import fact, facts_of
from ..features.option import Option
from .registry import known_task

#: Of how many metadata what they mean is remembered, and how long these may be: a job's are read at
#: its claim, where its task runs and when it ends, and many jobs have the same.
MOST_REMEMBERED, LONGEST_REMEMBERED = 1024, 500

#: The name under which a result shows why its task has discarded itself.
DISCARDED = "discarded"


def _is_user(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value)


@dataclass(frozen=True, kw_only=True)
class _Passed:
    __slots__ = ()

    #: What the caller has passed with ``metadata=``.
    user: Mapping[str, Any] = fact(is_valid=_is_user, default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMetadata(declared.Facts, _Passed):
    """What a job keeps in its ``metadata`` column, as a JSON object without what is not set."""

    def __setstate__(self, state: list[Any]) -> None:
        """Take over a pickle, perhaps of a release that had fewer facts."""
        names = [name for name, _ in _UNSET]
        for name, value in {**dict(_UNSET), **dict(zip(names, state, strict=False))}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def read(cls, text: object) -> JobMetadata:
        """Return the metadata of a row, without what is damaged."""
        if text is None:
            return NONE
        # SQLite lets a row hold something other than text.
        stored = str(text)
        return _remembered(stored) if len(stored) <= LONGEST_REMEMBERED else _read(stored)

    @classmethod
    def shown_in(cls, text: str | None) -> dict[str, Any]:
        """Return what the result of a job shows that has not started, by its stored metadata."""
        # Most say nothing that is shown: these are not read.
        return {} if text is None or f'"{_SHOWN}"' not in text else cls.read(text).shown

    def text(self, limits: PayloadLimits = arguments.DEFAULT_LIMITS) -> str | None:
        """Return the stored form, or ``None`` if nothing is set.

        Raises ``TaskArgumentError`` if it is too large.
        """
        # Calls of one batch or task have the same, unless they say something of their own.
        own = (getattr(self, name) for name in _OWN)
        is_shared = not (self.user or self.headers) and all(each in (None, "") for each in own)
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
        name: known[name] for name, each in _FACTS.items()
        if name in known and each.is_valid(known[name])
    })  # fmt: skip


_remembered = lru_cache(maxsize=MOST_REMEMBERED)(_read)


@lru_cache(maxsize=MOST_REMEMBERED)
def _shared_text(metadata: JobMetadata, limits: PayloadLimits) -> str | None:
    return metadata._text(limits)


def delivery_of(claim: ClaimedJob) -> str | None:
    """Return the delivery of a claimed job; ``None`` for most."""
    return None if claim.metadata is None else JobMetadata.read(claim.metadata).delivery


def require_options(options: Mapping[str, Any], where: str) -> None:
    """Raise ``InvalidTask`` that names ``where`` for options that do not go together."""
    for check in declared.OPTION_CHECKS:
        check(options, known_task, where)


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


#: What the caller passes on with a job, and the name under which it is kept.
USER = Option("metadata", _checked_metadata, _checked_metadata)
_SHOWN = "user"
FIELDS = {USER.name: _SHOWN}

_FACTS = facts_of(JobMetadata)
#: What most jobs have for themselves.
_OWN = tuple(name for name, each in _FACTS.items() if not each.is_shared)

#: The metadata of a job that has none.
NONE = JobMetadata()
#: Each name, and what it holds if it is not set.
_UNSET = tuple((each.name, getattr(NONE, each.name)) for each in fields(NONE))
#: The options of ``using()``, and those of ``@task``, that are stored in the metadata.
OF_CALLS = tuple(option.name for option in (USER, *declared.OPTIONS))
OPTIONS = tuple(option.name for option in (USER, *declared.OPTIONS) if option.of_task is not None)
