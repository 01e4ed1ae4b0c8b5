"""A lease ends once: whoever declares a process dead, and it itself, cannot both be right."""

from __future__ import annotations

from datetime import timedelta

from django.db import connections

from steady_queue_core.dialects import dialect_for, portable
from steady_queue_core.models import Process
from steady_queue_core.models import process as processes

from ..models.everywhere import on_every_database

LEASE = timedelta(minutes=5)


def silent_process(using: str) -> int:
    """Return the id of a process whose last heartbeat was an hour ago."""
    process_id = processes.register(
        using,
        kind="worker",
        name="worker-1",
        pid=1,
        hostname="here",
        supervisor_id=None,
        metadata="{}",
    )
    long_ago = dialect_for(using).current_time(connections[using]) - timedelta(hours=1)
    Process.objects.using(using).filter(pk=process_id).update(
        last_heartbeat_at=portable.storable(long_ago)
    )
    return process_id


@on_every_database
def test_a_process_that_was_declared_dead_gives_no_heartbeat_any_more(using: str) -> None:
    process_id = silent_process(using)
    assert processes.declare_dead(using, process_id, LEASE)
    assert not processes.beat(using, process_id)
    # Whoever declared it dead may have died of it: the next one finds the process again.
    assert [each.pk for each in processes.expired(using, LEASE)] == [process_id]
    assert processes.declare_dead(using, process_id, LEASE)


@on_every_database
def test_a_process_that_has_given_a_heartbeat_meanwhile_is_not_declared_dead(using: str) -> None:
    process_id = silent_process(using)
    assert [each.pk for each in processes.expired(using, LEASE)] == [process_id]
    assert processes.beat(using, process_id)
    assert not processes.declare_dead(using, process_id, LEASE)
    assert processes.beat(using, process_id)


@on_every_database
def test_a_process_whose_row_is_gone_is_dead(using: str) -> None:
    process_id = silent_process(using)
    processes.deregister(using, "worker-1")
    assert not processes.beat(using, process_id)
    assert not processes.declare_dead(using, process_id, LEASE)
