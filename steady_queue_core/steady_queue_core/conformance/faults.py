"""Things that happen between the statements of an operation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper


class Fault(ABC):
    """Strikes once: before statement number ``before`` of what runs while it is ``played``.

    Statements are counted from 0, as Django executes them.
    """

    def __init__(self, connection: BaseDatabaseWrapper, before: int) -> None:
        self._connection: Any = connection
        #: How many statements there are until it strikes.
        self.left = before
        #: Whether there was such a statement.
        self.is_done = False

    @contextmanager
    def played(self) -> Iterator[None]:
        """Count statements, and strike; may be entered several times."""
        with self._connection.execute_wrapper(self._execute):
            yield

    @abstractmethod
    def strike(self) -> None:
        """Do it."""

    def _execute(self, execute: Any, sql: str, values: Any, many: bool, context: Any) -> Any:
        self.left -= 1
        if self.left < 0 and not self.is_done:
            self.is_done = True
            self.strike()
        return execute(sql, values, many, context)


class Refusal(Fault):
    """Answers the statement with an error."""

    def __init__(self, connection: BaseDatabaseWrapper, before: int, error: BaseException) -> None:
        super().__init__(connection, before)
        self._error = error

    def strike(self) -> None:
        raise type(self._error)(*self._error.args) from self._error.__cause__


class Intrusion(Fault):
    """Calls a function before the statement."""

    def __init__(
        self, connection: BaseDatabaseWrapper, before: int, intrude: Callable[[], object]
    ) -> None:
        super().__init__(connection, before)
        self._intrude = intrude

    def strike(self) -> None:
        self._intrude()
