"""Deadlocks that are made up, and how often somebody asks whether an error is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from django.db import OperationalError

from steady_queue_core.dialects.dialect import Dialect

DEADLOCK = "made up for a test: deadlock"


class Attempts:
    """The tries that a deadlock has ended, of which somebody asks whether it is one."""

    def __init__(self, using: str) -> None:
        self.using, self.deadlocks = using, 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        ask = Dialect.is_contention

        def is_contention(dialect: Dialect, connection: Any, error: BaseException) -> bool:
            answer = DEADLOCK in str(error) or ask(dialect, connection, error)
            self.deadlocks += answer
            return answer

        with mock.patch.object(Dialect, "is_contention", is_contention):
            yield


@pytest.fixture
def attempts(using: str) -> Iterator[Attempts]:
    attempts = Attempts(using)
    with attempts.counted():
        yield attempts


@contextmanager
def deadlock_after(owner: Any, name: str) -> Iterator[None]:
    """Raise a deadlock once, after ``owner.name`` was called the first time."""
    operation, raised = getattr(owner, name), []

    def once(*args: Any, **options: Any) -> Any:
        result = operation(*args, **options)
        if not raised:
            raised.append(True)
            raise OperationalError(DEADLOCK)
        return result

    with mock.patch.object(owner, name, once):
        yield
    assert raised, f"{name} was not called"
