"""How long control threads wait for a server that does not answer."""

from __future__ import annotations

import unittest
from time import monotonic
from typing import Any
from unittest import mock

import pytest
from django.db import OperationalError
from django.test import TransactionTestCase

from steady_queue_core.conformance import DialectConformance
from steady_queue_core.dialects import Dialect
from steady_queue_postgres import answer_limits

from .cases import PostgresTestCase

CASE = "test_a_server_that_falls_silent_is_lost"


class TestLimits(PostgresTestCase):
    def limited(self, **options: Any) -> Any:
        limited: Any = self.connection.copy()
        limited.settings_dict["OPTIONS"].update(options)
        self.dialect.limit_silence(limited, 7.0)
        self.addCleanup(limited.close)
        return limited

    def test_the_projects_own_limits_stand(self) -> None:
        limited = self.limited(tcp_user_timeout=300, connect_timeout=9)
        assert limited.settings_dict["OPTIONS"]["connect_timeout"] == 9
        began = monotonic()
        with pytest.raises(OperationalError) as raised, limited.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(5)")
        assert monotonic() - began < 4
        assert self.dialect.is_lost_connection(limited, raised.value)

    def test_a_project_may_have_no_limit(self) -> None:
        limited = self.limited(tcp_user_timeout=0)
        limited.ensure_connection()
        assert "wait" not in vars(limited.connection)

    def test_who_hears_something_now_and_then_goes_on_listening(self) -> None:
        """However long the whole answer takes."""
        limited = self.limited(tcp_user_timeout=1000)
        with limited.cursor() as cursor:
            cursor.execute("SELECT repeat('x', 100000), pg_sleep(0.3) FROM generate_series(1, 6)")
            assert len(cursor.fetchall()) == 6

    def test_no_pool_gives_a_limited_connection_to_others(self) -> None:
        limited = self.limited(pool={"min_size": 0, "max_size": 2})
        limited.ensure_connection()
        assert limited.pool is None


@pytest.mark.parametrize("mutant", ["waits as ever", "trusts the system alone"])
@pytest.mark.django_db(transaction=True, databases=["default", PostgresTestCase.using])
def test_the_suite_fails_for_a_dialect_that(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The relay acknowledges all, as the system of a server does whose processes are frozen."""
    if mutant == "waits as ever":
        monkeypatch.setattr(Dialect, "limit_silence", lambda self, connection, seconds: None)
    else:
        monkeypatch.setattr(answer_limits, "_BoundedWait", lambda session, timeout: session.wait)

    class Suite(DialectConformance, TransactionTestCase):
        using = PostgresTestCase.using
        databases = {PostgresTestCase.using}
        patience = 6.0

    result = unittest.TestResult()
    with mock.patch.object(Suite, "__unittest_skip__", False, create=True):
        Suite(CASE).run(result)
    assert len(result.failures + result.errors) == 1, result
