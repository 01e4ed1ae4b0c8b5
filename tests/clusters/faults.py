"""What is done to a cluster at work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .cluster import Cluster
from .load import Load

#: Seconds until there is another writer, and until all nodes are well again.
PROMOTION = 120.0
RECOVERY = 400.0


@dataclass(frozen=True)
class Fault:
    """A fault, and the engines that it is for; none named: all of them."""

    name: str
    play: Callable[[Cluster, Load, float], None]
    engines: tuple[str, ...] = ()
    #: Whether the supervisors work at two nodes, without a proxy.
    two_writers: bool = False
    #: Whether it begins with the code, and the schema, of some migrations ago.
    older_code: bool = False


def kill(cluster: Cluster, load: Load, seconds: float) -> None:
    """The writer's node dies, and is started again."""
    old = _writer(cluster)
    load.mark_fault()
    old.kill()
    _wait_for_another(cluster, load, old)
    load.run_for(seconds)
    old.start()


def switch_over(cluster: Cluster, load: Load, seconds: float) -> None:
    """The writer is moved as planned."""
    old = _writer(cluster)
    load.mark_fault()
    cluster.switch_over()
    _wait_for_another(cluster, load, old)
    load.run_for(seconds)


def freeze(cluster: Cluster, load: Load, seconds: float) -> None:
    """The writer's node stands still, and goes on when another one has taken over."""
    old = _writer(cluster)
    load.mark_fault()
    old.freeze()
    try:
        _wait_for_another(cluster, load, old)
        load.run_for(seconds)
    finally:
        old.thaw()


def partition(cluster: Cluster, load: Load, seconds: float) -> None:
    """The writer's node reaches nobody, and nobody reaches it."""
    old = _writer(cluster)
    load.mark_fault()
    cluster.cut_off(old)
    try:
        _wait_for_another(cluster, load, old)
        load.run_for(seconds)
    finally:
        cluster.reconnect(old)


def leave_and_join(cluster: Cluster, load: Load, seconds: float) -> None:
    """A node that does not write leaves, and joins again."""
    other = _reader(cluster)
    load.mark_fault()
    other.stop()
    load.run_for(seconds)
    other.start()


def alter(cluster: Cluster, load: Load, seconds: float) -> None:
    """The jobs table is altered at the writer."""
    _alter(_writer(cluster), load, seconds)


def alter_elsewhere(cluster: Cluster, load: Load, seconds: float) -> None:
    """The jobs table is altered at another node, which Galera repeats at the writer."""
    _alter(_reader(cluster), load, seconds)


def upgrade(cluster: Cluster, load: Load, seconds: float) -> None:
    """The schema is migrated while the older code runs, and today's takes over."""
    load.run_for(seconds / 3)
    load.mark_fault()
    load.upgrade()
    load.run_for(seconds)


def nothing(cluster: Cluster, load: Load, seconds: float) -> None:
    """Nothing but the load."""
    load.mark_fault()
    load.run_for(2 * seconds)


FAULTS = (
    Fault("kill", kill),
    Fault("switch over", switch_over),
    Fault("freeze", freeze),
    Fault("partition", partition),
    Fault("leave and join", leave_and_join),
    Fault("alter", alter),
    Fault("alter elsewhere", alter_elsewhere, ("galera",)),
    Fault("upgrade", upgrade, older_code=True),
    Fault("two writers", nothing, ("galera", "several_primaries"), two_writers=True),
)


def _alter(node: Any, load: Load, seconds: float) -> None:
    table = f"{node.database_prefix}steady_queue_jobs"
    load.mark_fault()
    for number in range(1, 6):
        node.run(f"ALTER TABLE {table} ADD COLUMN altered_{number} INT NULL")
        load.run_for(seconds / 10)
        node.run(f"ALTER TABLE {table} DROP COLUMN altered_{number}")
        load.run_for(seconds / 10)


def _writer(cluster: Cluster) -> Any:
    found = cluster.primary()
    if found is None:
        raise LookupError(f"{cluster.name}: no node takes writes")
    return found


def _reader(cluster: Cluster) -> Any:
    writer = _writer(cluster)
    return next(node for node in reversed(cluster.nodes) if node is not writer)


def _wait_for_another(cluster: Cluster, load: Load, old: Any) -> None:
    cluster.wait("another writer", PROMOTION, lambda: cluster.primary() not in (None, old))
    load.mark_promotion()
