"""The base class of the configuration's parts, which are checked once and then frozen."""

from __future__ import annotations

import inspect
from typing import Self

from .reader import Reader


class Section:
    """Base of the configuration's dataclasses.

    A subclass declares its fields, accepts them with their defaults and in wider types in
    ``__init__``, and converts them to the types of the fields in ``_read``.
    """

    @staticmethod
    def _read(reader: Reader) -> dict[str, object]:
        """Return the checked value of every field; collect problems in the reader."""
        raise NotImplementedError

    def _fill(self, reader: Reader) -> None:
        values = self._read(reader)
        reader.finish()
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def parse(cls, mapping: object, where: str) -> Self:
        """Build from the dict at ``where`` in the settings.

        Raises ConfigurationError for unknown keys and wrong values, all of them at once.
        """
        parameters = inspect.signature(cls).parameters.values()
        reader = Reader.for_mapping(
            where, mapping, {each.name: each.default for each in parameters}
        )
        section = cls.__new__(cls)
        section._fill(reader)
        return section
