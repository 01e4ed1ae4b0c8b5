"""Hides arguments and results of tasks that are named like secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from inspect import Parameter
from itertools import islice, repeat, zip_longest
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.views.debug import get_default_exception_reporter_filter

from ..configuration import Configuration, ConfigurationError
from ..configuration.options import HIDDEN_ARGUMENTS
from ..errors import UnregisteredTaskError
from ..tasks.registry import find_task
from ..tasks.signature import read_signature, takes_any_position

HIDDEN = "*" * 20
#: A value that shows whether Django's error page filter hides a name.
_PROBE = object()


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
