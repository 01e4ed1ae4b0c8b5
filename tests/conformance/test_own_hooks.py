"""The portable building blocks go by what the dialect that uses them has of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression

from steady_queue_core.conformance.base import limited_job
from steady_queue_core.dialects.portable.clock import Clock

from . import test_portable
from .portable_dialect import HOOKS


class FastClock(Clock):
    """Some seconds ahead, but less than the suite lets pass as the database's clock."""

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "(STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', 'NOW', '+5 seconds') || '000')"
        return self.as_sql(compiler, connection, template=template, **context)


def ahead(connection: BaseDatabaseWrapper) -> Expression:
    return FastClock()


#: The hooks that were called, by the ends of their names.
asked: set[str] = set()


def noting(name: str, hook: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(hook)
    def noted(*given: Any, **named: Any) -> Any:
        asked.add(name.removeprefix("steady_queue_"))
        return hook(*given, **named)

    return noted


@pytest.mark.thorough
class TestOwnHooks(test_portable.TestPortableConformance):
    """The whole suite, with a clock that is not the portable one."""

    using = "own_hooks"
    databases = {"default", "own_hooks"}
    hooks = {
        name: noting(name, hook) for name, hook in {**HOOKS, "steady_queue_now": ahead}.items()
    }

    def parts_of(self, operation: Callable[[], Any]) -> set[str]:
        asked.clear()
        operation()
        return set(asked)

    def test_each_part_of_an_operation_is_the_dialects_own(self) -> None:
        process_id, parts = self.register(), {"transaction", "lock_rows", "now"}
        enqueue = self.parts_of(lambda: self.enqueue(limited_job(queue_name="mail")))
        assert {*parts, "insert_if_absent"} <= enqueue
        claims = []
        claim = self.parts_of(lambda: claims.extend(self.claim(1, "ma*", process_id=process_id)))
        assert {*parts, "list_queues"} <= claim
        assert parts <= self.parts_of(lambda: self.settle(self.finished(claims[0])))
        assert parts <= self.parts_of(lambda: self.dialect.dispatch(self.connection, 10))
