"""A lease ends once: whoever declares a process dead, and it itself, cannot both be right."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from steady_queue_core.dialects import dialect_for, portable
from steady_queue_core.models import Process
from steady_queue_core.models import process as processes

pytestmark = pytest.mark.django_db(transaction=True)

LEASE = timedelta(minutes=5)


def silent_process() -> int:
    """Return the id of a process whose last heartbeat was an hour ago."""
    process_id = processes.register(
        "default",
        kind="worker",
        name="worker-1",
        pid=1,
        hostname="here",
        supervisor_id=None,
        metadata="{}",
    )
    long_ago = dialect_for("default").current_time(connection) - timedelta(hours=1)
    Process.objects.filter(pk=process_id).update(last_heartbeat_at=portable.storable(long_ago))
    return process_id


def test_a_process_that_was_declared_dead_gives_no_heartbeat_any_more() -> None:
    process_id = silent_process()
    assert processes.declare_dead("default", process_id, LEASE)
    assert not processes.beat("default", process_id)
    # Whoever declared it dead may have died of it: the next one finds the process again.
    assert [each.pk for each in processes.expired("default", LEASE)] == [process_id]
    assert processes.declare_dead("default", process_id, LEASE)


def test_a_process_that_has_given_a_heartbeat_meanwhile_is_not_declared_dead() -> None:
    process_id = silent_process()
    assert [each.pk for each in processes.expired("default", LEASE)] == [process_id]
    assert processes.beat("default", process_id)
    assert not processes.declare_dead("default", process_id, LEASE)
    assert processes.beat("default", process_id)


def test_a_process_whose_row_is_gone_is_dead() -> None:
    process_id = silent_process()
    processes.deregister("default", "worker-1")
    assert not processes.beat("default", process_id)
    assert not processes.declare_dead("default", process_id, LEASE)
