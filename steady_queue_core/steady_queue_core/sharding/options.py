"""The options of a sharded backend: ``TASKS[alias]["OPTIONS"]``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from ..backend_options import imported_function
from ..configuration.errors import describe
from ..configuration.reader import Reader

#: Computes the shard key of a call from the task, its positional and its named arguments.
KeyFunction = Callable[[Any, list[Any], dict[str, Any]], object]


@dataclass(frozen=True, kw_only=True)
class ShardingOptions:
    """The options of a sharded backend."""

    alias: str = "default"
    """The backend's key in ``TASKS``."""
    shards: tuple[str, ...] = ()
    """Aliases in ``TASKS`` of the backends that store the jobs, in any order."""
    key: str | None = None
    """The parameter of tasks whose value decides about the shard of a call, or the dotted path of a
    function of the task, its positional and its named arguments; None: each task says so itself."""
    draining: tuple[str, ...] = ()
    """Aliases of shards that get no more calls, and go on until their jobs have ended."""

    @classmethod
    def parse(cls, alias: str, mapping: object) -> ShardingOptions:
        """Read the ``OPTIONS`` of ``TASKS[alias]``.

        Raises ConfigurationError for unknown keys and wrong values, all of them at once.
        """
        defaults = {each.name: each.default for each in fields(cls) if each.name != "alias"}
        where = f"TASKS[{alias!r}]['OPTIONS']"
        reader = Reader.for_mapping(where, {} if mapping is None else mapping, defaults)
        options = cls(
            alias=alias,
            shards=_read_aliases(reader, "shards"),
            key=_read_key(reader),
            draining=_read_aliases(reader, "draining"),
        )
        if not options.shards and not reader.problems:
            reader.wrong("shards", "the aliases in TASKS of one backend or more")
        reader.problems += [
            f"{where}: {shard!r} is named {count} times; name each shard once"
            for shard, count in Counter([*options.shards, *options.draining]).items()
            if count > 1
        ]
        reader.finish()
        return options

    @property
    def where(self) -> str:
        """How messages name these options."""
        return f"TASKS[{self.alias!r}]['OPTIONS']"

    @property
    def members(self) -> tuple[str, ...]:
        """All shards, also those that get no more calls."""
        return (*self.shards, *self.draining)

    def load_function(self) -> KeyFunction | None:
        """Import the function that ``key`` names; ``None``: it names none.

        Raises ConfigurationError.
        """
        if self.key is None or "." not in self.key:
            return None
        return imported_function(
            self.key, f"{self.where}['key']", "the task, its arguments and its named arguments"
        )


def _read_aliases(reader: Reader, name: str) -> tuple[str, ...]:
    found = reader.names(name)
    if "" in found:
        reader.problems.append(f"{reader.path(name)}: {describe('')} is no alias in TASKS")
    return found


def _read_key(reader: Reader) -> str | None:
    value = reader.values["key"]
    if value is None:
        return None
    if isinstance(value, str) and all(part.isidentifier() for part in value.split(".")):
        return value
    reader.wrong("key", "the name of a parameter, or the dotted path of a function")
    return None
