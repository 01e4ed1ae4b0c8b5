"""Hiding what is named like a secret among the arguments and results of tasks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from itertools import islice, repeat
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.views.debug import get_default_exception_reporter_filter

from ..configuration import Configuration, ConfigurationError
from ..configuration.options import HIDDEN_ARGUMENTS
from ..errors import UnregisteredTaskError
from ..tasks.definition import find_task

HIDDEN = "*" * 20
#: What Django's filter of error pages is asked to show, to see whether it does.
_PROBE = object()


class Mask:
    """What is hidden: names that the setting ``hidden_arguments`` finds, and those that Django
    hides on its error pages."""

    def __init__(self) -> None:
        self._names = re.compile(_pattern(), re.IGNORECASE)
        self._cleanse = getattr(get_default_exception_reporter_filter(), "cleanse_setting", None)

    def hides(self, name: object) -> bool:
        """Whether a value of this name is hidden; names that are not text are not."""
        if isinstance(name, bytes):
            name = name.decode("latin-1")
        if not isinstance(name, str):
            return False
        if self._names.search(name):
            return True
        return self._cleanse is not None and self._cleanse(name, _PROBE) is not _PROBE

    def shown(self, value: Any, name: object = "") -> Any:
        """Return ``value`` as it may be shown: without what is hidden in it, if not all is."""
        if self.hides(name):
            return HIDDEN
        if isinstance(value, dict):
            return {key: self.shown(each, key) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            # The item of a dict may be written as a pair.
            is_hidden = len(value) == 2 and self.hides(value[0])
            shown = [value[0], HIDDEN] if is_hidden else map(self.shown, value)
            return tuple(shown) if isinstance(value, tuple) else list(shown)
        # What is in a set has no name.
        return value


def parameters_of(task_path: object, count: int) -> list[str] | None:
    """Return the names of the parameters that ``count`` positional arguments of a task are for,
    as far as there are any; ``None``: this process does not know the task."""
    try:
        task = find_task(str(task_path))
        parameters = [*inspect.signature(task.func).parameters.values()]
    except (UnregisteredTaskError, TypeError, ValueError):
        return None
    return [*islice(_positional(parameters[bool(task.takes_context) :]), count)]


def _positional(parameters: list[inspect.Parameter]) -> Iterator[str]:
    for each in parameters:
        if each.kind is each.VAR_POSITIONAL:
            yield from repeat(each.name)
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            yield each.name


def _pattern() -> str:
    try:
        pattern = Configuration.load().hidden_arguments
    except (ConfigurationError, ImproperlyConfigured):
        pattern = None  # The system checks report it.
    return HIDDEN_ARGUMENTS if pattern is None else pattern
