"""Reads settings one by one and collects all problems, to report them at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from ..durations import LONGEST, to_timedelta
from .errors import ConfigurationError, describe, suggest


class Reader:
    """Checks the values at one place in the settings.

    For a wrong value, a method records the problem and returns a placeholder. ``finish()`` raises
    before the placeholder can be used.
    """

    def __init__(
        self, where: str, path: Callable[[str], str], values: Mapping[str, object]
    ) -> None:
        self.where = where
        self.path = path
        self.values = values
        self.problems: list[str] = []

    @classmethod
    def for_call(cls, name: str, arguments: Mapping[str, object]) -> Reader:
        """Read the arguments of a constructor; problems name them as ``Name(argument=...)``."""
        return cls(name, lambda key: f"{name}({key}=...)", arguments)

    @classmethod
    def for_mapping(cls, where: str, mapping: object, defaults: Mapping[str, object]) -> Reader:
        """Read a dict in the settings; the keys of ``defaults`` are valid."""
        reader = cls(where, lambda key: f"{where}[{key!r}]", defaults)
        if not isinstance(mapping, Mapping):
            reader.problems.append(f"{where}: expected a dict, got {describe(mapping)}")
            return reader
        for key in mapping:
            if key not in defaults:
                reader.problems.append(f"{where}: unknown key {key!r}; {suggest(key, defaults)}")
        reader.values = {key: mapping.get(key, default) for key, default in defaults.items()}
        return reader

    def given(self, name: str) -> bool:
        """Whether there is a value other than None."""
        return self.values[name] is not None

    def wrong(self, name: str, expected: str) -> None:
        """Record that the value of ``name`` is not the ``expected`` one."""
        self.problems.append(
            f"{self.path(name)}: expected {expected}, got {describe(self.values[name])}"
        )

    def finish(self) -> None:
        """Raise ConfigurationError if there was any problem."""
        if self.problems:
            raise ConfigurationError(self.problems)

    def integer(self, name: str, *, least: int, most: int | None = None) -> int:
        value = self.values[name]
        if isinstance(value, bool) or not isinstance(value, int):
            value = None
        if value is None or value < least or (most is not None and value > most):
            upper = "" if most is None else f" and at most {most}"
            self.wrong(name, f"an integer of at least {least}{upper}")
            return least
        return value

    def optional_integer(self, name: str, *, least: int) -> int | None:
        """Read an integer; None stays None."""
        return self.integer(name, least=least) if self.given(name) else None

    def duration(self, name: str, *, zero: bool = False) -> timedelta:
        """Read a duration above zero, or of zero as well if ``zero`` is true."""
        try:
            duration = to_timedelta(self.values[name])
            if duration or zero:
                return duration
        except (TypeError, ValueError):
            pass
        least = "of at least 0" if zero else "above 0"
        self.wrong(
            name, f"a timedelta or a number of seconds {least} and at most {LONGEST.days} days"
        )
        return LONGEST

    def flag(self, name: str) -> bool:
        value = self.values[name]
        if not isinstance(value, bool):
            self.wrong(name, "True or False")
        return value is True

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Read one of several words."""
        value = self.values[name]
        if isinstance(value, str) and value in choices:
            return value
        self.wrong(name, " or ".join(map(repr, choices)))
        return choices[0]

    def names(self, name: str) -> tuple[str, ...]:
        """Read a list or tuple of strings, or one string with commas; strip each."""
        value = self.values[name]
        entries = value.split(",") if isinstance(value, str) else value
        if not isinstance(entries, (list, tuple)):
            self.wrong(name, "a list or tuple of strings, or one string with commas")
            return ()
        for index, entry in enumerate(entries):
            if not isinstance(entry, str):
                self.problems.append(
                    f"{self.path(name)}[{index}]: expected a string, got {describe(entry)}"
                )
        return tuple(entry.strip() for entry in entries if isinstance(entry, str))
