"""What a subcommand is given: its options, its databases, and where it prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from ..printable import hanging, printable
from .databases import DatabaseChoice
from .job_ids import chosen_backend

#: The version of the form of what is printed with ``--json``.
SCHEMA = 1


class Output(Protocol):
    """Django's wrapper of a stream."""

    def write(self, msg: str, style_func: Callable[[str], str] | None = None) -> Any: ...

    def flush(self) -> Any: ...

    def isatty(self) -> bool: ...


class Unwritable(Exception):
    """The output cannot be written, as to a disk that is full."""


@dataclass
class Context:
    """One run of a subcommand."""

    #: The parsed options, by name.
    options: Mapping[str, Any]
    stdout: Output
    stderr: Output
    #: Whether the object of ``--json`` was printed.
    has_shown: bool = field(default=False, init=False)

    @cached_property
    def databases(self) -> DatabaseChoice:
        """The databases of the queue that the options choose."""
        return DatabaseChoice(chosen_backend(self.options))

    @property
    def prints_json(self) -> bool:
        return bool(self.options.get("json"))

    def show(
        self, data: Mapping[str, Any], lines: Iterable[str] = (), problems: Iterable[str] = ()
    ) -> None:
        """Print the outcome: ``data`` as one JSON object with ``--json``, otherwise the ``lines``,
        each of which stays one, whatever it quotes. ``problems`` are part of the object, and
        printed to the standard error."""
        problems = list(problems)
        self.has_shown = True
        if self.prints_json:
            report = {"schema": SCHEMA, **data, "problems": problems}
            _write(self.stdout, json.dumps(report, default=str))
        else:
            for line in lines:
                _write(self.stdout, printable(line))
        for problem in problems:
            self.note(problem)

    def say(self, line: str) -> None:
        """Print a line of text for people: to the standard output, or beside JSON."""
        _write(self.stderr if self.prints_json else self.stdout, printable(line))

    def flush(self) -> None:
        """Write what is buffered to the standard output. Raises ``Unwritable``, and
        ``BrokenPipeError``, as all that prints there does."""
        with writing():
            self.stdout.flush()

    def note(self, message: str) -> None:
        """Print a message to the standard error, if that can be."""
        with suppress(Unwritable, OSError, ValueError):
            _write(self.stderr, hanging(message))
            self.stderr.flush()


@contextmanager
def writing() -> Iterator[None]:
    """Tell errors of the output from others. Raises ``Unwritable``, and ``BrokenPipeError``."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritable(error.strerror or str(error)) from error


def _write(stream: Output, text: str) -> None:
    with writing():
        try:
            stream.write(text, _plain)
        except UnicodeEncodeError:  # A stream that takes ASCII only.
            stream.write(text.encode("ascii", "backslashreplace").decode(), _plain)


def _plain(text: str) -> str:
    """Leave a text as it is, which Django would print in red on the standard error."""
    return text
