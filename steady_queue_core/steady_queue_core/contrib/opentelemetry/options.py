"""The options of tracing: ``STEADY_QUEUE_OPENTELEMETRY``, and the arguments of ``instrument()``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, cast

from django.utils.module_loading import import_string

from ...configuration.errors import ConfigurationError
from ...configuration.reader import Reader

LINK, PARENT = "link", "parent"


@dataclass(frozen=True, kw_only=True)
class TracingOptions:
    """What is traced, and how."""

    propagate: str = LINK
    """What an attempt has to do with the trace that its job was enqueued in: ``"link"``, or
    ``"parent"`` to make it a part of that trace."""
    receive_and_settle: bool = True
    """Whether there are spans for the claims of workers, and for the outcomes that they store."""
    concurrency_keys: bool = False
    """Whether spans name the concurrency keys of jobs, which may say something of a person."""
    gauges: bool = True
    """Whether dispatchers measure the depths of queues, the longest waits and the processes."""
    configure: str | None = None
    """Dotted path of a function that is called once in each process of the queue that works, before
    it does, to make the providers; None: they are made elsewhere."""

    @classmethod
    def parse(cls, where: str, mapping: object) -> TracingOptions:
        """Read the dict at ``where``. Raises ConfigurationError for unknown keys and wrong values,
        all of them at once."""
        defaults = {each.name: each.default for each in fields(cls)}
        reader = Reader.for_mapping(where, mapping, defaults)
        options = cls(
            propagate=reader.choice("propagate", (LINK, PARENT)),
            receive_and_settle=reader.flag("receive_and_settle"),
            concurrency_keys=reader.flag("concurrency_keys"),
            gauges=reader.flag("gauges"),
            configure=_read_configure(reader),
        )
        reader.finish()
        options.load_configure(where)
        return options

    def load_configure(self, where: str) -> Callable[[], object] | None:
        """Import the function that makes the providers. Raises ConfigurationError."""
        if self.configure is None:
            return None
        said = f"{where}['configure']: {self.configure!r}"
        try:
            found: Any = import_string(self.configure)
        except ImportError as error:
            raise ConfigurationError(f"{said} cannot be imported: {error}") from error
        if not callable(found):
            raise ConfigurationError(f"{said} is not a function without parameters")
        return cast("Callable[[], object]", found)


def _read_configure(reader: Reader) -> str | None:
    value = reader.values["configure"]
    if value is None or (isinstance(value, str) and "." in value):
        return value
    reader.wrong("configure", "the dotted path of a function, or None")
    return None
