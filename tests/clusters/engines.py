"""The engines by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from .cluster import Cluster
from .galera import Galera
from .group_replication import GroupReplication
from .patroni import Patroni

ENGINES: dict[str, Callable[[Path], Cluster]] = {
    "patroni": Patroni,
    "patroni_hosts": partial(Patroni, is_direct=True),
    "galera": Galera,
    "group_replication": GroupReplication,
    "several_primaries": partial(GroupReplication, several_primaries=True),
}
#: Engines that are there for one fault alone.
ONLY = {"several_primaries": ("two writers",)}
