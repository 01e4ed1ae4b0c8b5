"""A lease ends once: whoever declares a process dead, and it itself, cannot both be right."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connections

from steady_queue_core.dialects import ProcessIdentity, dialect_for, portable
from steady_queue_core.models import Process
from steady_queue_core.models import process as processes
from steady_queue_core.models.process import Beat

from ..models.everywhere import on_every_database

LEASE = timedelta(minutes=5)


def silent_process(using: str) -> ProcessIdentity:
    """Register a process whose last heartbeat was an hour ago."""
    process = processes.register(
        using,
        kind="worker",
        name="worker-1",
        pid=1,
        hostname="here",
        supervisor_id=None,
        metadata="{}",
    )
    long_ago = dialect_for(using).current_time(connections[using]) - timedelta(hours=1)
    Process.objects.using(using).filter(pk=process.id).update(
        last_heartbeat_at=portable.storable(long_ago)
    )
    return process


def limit(using: str) -> datetime:
    """Return when a process must have sent a heartbeat to count as alive."""
    return dialect_for(using).current_time(connections[using]) - LEASE


@on_every_database
def test_a_process_that_was_declared_dead_gives_no_heartbeat_any_more(using: str) -> None:
    process = silent_process(using)
    assert processes.declare_dead(using, process, limit(using))
    assert processes.beat(using, process) is Beat.REFUSED
    # Whoever declared it dead may have died of it: the next one finds the process again.
    assert [each.pk for each in processes.expired(using, limit(using))] == [process.id]
    assert processes.declare_dead(using, process, limit(using))


@on_every_database
def test_a_process_that_has_given_a_heartbeat_meanwhile_is_not_declared_dead(using: str) -> None:
    process = silent_process(using)
    assert [each.pk for each in processes.expired(using, limit(using))] == [process.id]
    assert processes.beat(using, process) is Beat.RECORDED
    assert not processes.declare_dead(using, process, limit(using))
    assert processes.beat(using, process) is Beat.RECORDED


@on_every_database
def test_a_process_whose_row_is_gone_is_dead(using: str) -> None:
    process = silent_process(using)
    processes.deregister(using, "worker-1")
    assert processes.beat(using, process) is Beat.REFUSED
    assert not processes.declare_dead(using, process, limit(using))


@on_every_database
def test_a_process_of_an_earlier_life_does_not_keep_the_row_of_another_alive(using: str) -> None:
    """Restored, the database has given its id to a process of another name."""
    process = silent_process(using)
    earlier = process._replace(name="worker-0")
    rows = Process.objects.using(using).filter(pk=process.id)
    before = rows.values().get()
    assert processes.beat(using, earlier) is Beat.REFUSED
    processes.save_metadata(using, earlier, '{"queues": ["other"]}')
    processes.deregister(using, earlier.name)
    assert not processes.declare_dead(using, earlier, limit(using))
    assert rows.values().get() == before
    assert processes.beat(using, process) is Beat.RECORDED
