"""What the queue adds to the project's own connections disturbs nothing that the project adds."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db(transaction=True)


def log(execute: Any, sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    return execute(sql, params, many, context)


def test_a_wrapper_of_the_project_ends_with_its_block() -> None:
    """A request begins without a connection: ours is added within the project's block."""
    for _ in range(3):
        connection.close()
        with connection.execute_wrapper(log), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert connection.execute_wrappers[-1] is log
        assert log not in connection.execute_wrappers
        assert len(connection.execute_wrappers) == 1
