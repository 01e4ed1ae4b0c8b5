"""Arguments and results of jobs as they may be shown: without secrets, whatever the rows hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import Parameter
from itertools import islice, repeat, zip_longest
from pprint import pformat
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.views.debug import get_default_exception_reporter_filter

from .. import arguments
from ..arguments import DeserializationError
from ..arguments.signature import read_signature, takes_any_position
from ..configuration import Configuration, ConfigurationError
from ..configuration.options import HIDDEN_ARGUMENTS
from ..errors import UnregisteredTaskError
from ..payloads import PayloadError
from ..printable import printable
from ..tasks.registry import find_task
from ..tasks.stored_payloads import call_text, result_text

HIDDEN = "*" * 20
#: A value that shows whether Django's error page filter hides a name.
_PROBE = object()
#: Longer stored text is not decoded.
MOST_READ = 2**20
#: Longer text is not pretty-printed, which takes a second per megabyte.
MOST_PRETTY = 100_000
UNREADABLE = "The stored {:,} characters cannot be decoded."
TOO_LONG = "The stored {:,} characters are too long to show."
UNKNOWN = "The task is not registered in this process: positional arguments are hidden."


class Redactor:
    """Hides values by name: by the setting ``hidden_arguments``, and as Django does on its error
    pages."""

    def __init__(self) -> None:
        self._names = re.compile(_pattern(), re.IGNORECASE)
        self._cleanse = getattr(get_default_exception_reporter_filter(), "cleanse_setting", None)

    def is_secret(self, name: object) -> bool:
        """Whether values of this name are hidden. Names that are not text are never secret."""
        if isinstance(name, bytes):
            name = name.decode("latin-1")
        if not isinstance(name, str):
            return False
        if self._names.search(name):
            return True
        return self._cleanse is not None and self._cleanse(name, _PROBE) is not _PROBE

    def redact(self, value: Any, name: object = "") -> Any:
        """Return ``value`` with secrets in it replaced, or ``HIDDEN`` if its name is secret."""
        if self.is_secret(name):
            return HIDDEN
        if isinstance(value, dict):
            return {key: self.redact(each, key) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            # A pair may be an item of a dict.
            is_hidden = len(value) == 2 and self.is_secret(value[0])
            shown = [value[0], HIDDEN] if is_hidden else map(self.redact, value)
            return tuple(shown) if isinstance(value, tuple) else list(shown)
        # Elements of a set have no names.
        return value

    def redact_positional(self, values: Sequence[Any], names: list[str] | None) -> list[Any]:
        """Return positional arguments, redacted by the names of their parameters; those without a
        name are hidden."""
        named = zip_longest(names or (), values, fillvalue=None)
        return [HIDDEN if name is None else self.redact(value, name) for name, value in named]

    def names(self, task_path: object, count: int) -> list[str] | None:
        """Return the parameter names of the first ``count`` positional arguments of a task, as far
        as they are known; ``None`` if the task is not registered in this process."""
        try:
            task = find_task(str(task_path))
            parameters = [*read_signature(task.func).parameters.values()]
            has_secret = any(self.is_secret(each.name) for each in parameters)
            # Such a decorator may put an argument of its own before those that it was given.
            if has_secret and takes_any_position(task.func):
                return []
        except (UnregisteredTaskError, TypeError, ValueError):
            return None
        return [*islice(_positional(parameters[bool(task.takes_context) :]), count)]


def _positional(parameters: list[Parameter]) -> Iterator[str]:
    for each in parameters:
        if each.kind is each.VAR_POSITIONAL:
            yield from repeat(each.name)
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            yield each.name


def _pattern() -> str:
    try:
        pattern = Configuration.load().hidden_arguments
    except (ConfigurationError, ImproperlyConfigured):
        pattern = None  # Reported by the system checks.
    return HIDDEN_ARGUMENTS if pattern is None else pattern


@dataclass(frozen=True)
class ShownCall:
    """The arguments of a call. Values named like a secret are hidden, and so are positional
    arguments whose names are unknown."""

    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    #: Why there are none, or why some are hidden.
    note: str = ""
    #: Whether they can be shown at all.
    is_readable: bool = True
    #: The size of the stored text.
    size: int = 0

    def lines(self) -> list[str]:
        """Return the arguments as text, one each."""
        pretty = self.size <= MOST_PRETTY
        return [
            *(formatted(value, pretty) for value in self.args),
            *(
                f"{printable(name)}={formatted(value, pretty)}"
                for name, value in self.kwargs.items()
            ),
        ]

    def texts(self) -> Iterator[str]:
        """Yield the arguments as text, each on one line, with the names of those that have some."""
        yield from map(repr, self.args)
        yield from (f"{printable(name)}={value!r}" for name, value in self.kwargs.items())


def shown_call(
    job: Any, opened: Callable[[Any], str] = call_text, redactor: Redactor | None = None
) -> ShownCall:
    """Return the arguments of the call.

    ``job`` may be any row with ``arguments`` and ``task_path``; ``opened`` takes the encoded
    arguments out of their stored form. ``redactor``: one to be used for many calls.
    """
    text = job.arguments
    if len(text) > MOST_READ:
        return ShownCall(note=TOO_LONG.format(len(text)), is_readable=False)
    try:
        text = opened(job)
        args, kwargs = arguments.decode_call(text, resolve_models=False)
    except PayloadError as error:
        return ShownCall(note=str(error), is_readable=False)
    except DeserializationError:
        return ShownCall(note=UNREADABLE.format(len(text)), is_readable=False)
    redactor = redactor or Redactor()
    names = redactor.names(job.task_path, len(args))
    shown = redactor.redact_positional(args, names)
    named = {name: redactor.redact(value, name) for name, value in kwargs.items()}
    return ShownCall(shown, named, UNKNOWN if args and names is None else "", size=len(text))


@dataclass(frozen=True)
class ShownValue:
    """A stored value; or the ``note`` why it cannot be shown."""

    value: Any = None
    note: str = ""
    size: int = 0

    @property
    def text(self) -> str:
        return formatted(self.value, self.size <= MOST_PRETTY)


def shown_value(stored: object, opened: Callable[[str], str] = str, name: str = "") -> ShownValue:
    """Return a stored value, in which what is named like a secret is hidden; ``name``: that of the
    value. ``opened`` takes the encoded value out of its stored form."""
    text = str(stored)  # SQLite lets a row hold something other than text.
    if len(text) > MOST_READ:
        return ShownValue(note=TOO_LONG.format(len(text)))
    try:
        text = opened(text)
        value = arguments.decode(text, resolve_models=False)
    except PayloadError as error:
        return ShownValue(note=str(error))
    except DeserializationError:
        return ShownValue(note=UNREADABLE.format(len(text)))
    return ShownValue(Redactor().redact(value, name), size=len(text))


def shown_result(job: Any) -> ShownValue | None:
    """Return the result, if there is one. It is hidden if the task's function is named like a
    secret."""
    if job.return_value is None:
        return None
    function = str(job.task_path).rpartition(".")[2]
    return shown_value(job.return_value, lambda _: result_text(job), function)


def formatted(value: Any, pretty: bool) -> str:
    """Return a value as text, on several lines if it is long and that does not take too long."""
    return pformat(value, width=100, sort_dicts=False) if pretty else repr(value)
