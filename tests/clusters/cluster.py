"""What a cluster has to offer for the faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Node(Protocol):
    """A node of a cluster: one process group."""

    name: str
    address: tuple[str, int]

    def kill(self) -> None:
        """End it by SIGKILL."""

    def freeze(self) -> None:
        """Stop it by SIGSTOP, until ``thaw``."""

    def thaw(self) -> None: ...

    def stop(self) -> None:
        """End it as its administrator does."""

    def start(self) -> None:
        """Start it again; return when it answers."""

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as its administrator; return the rows of the last one."""


class Cluster(Protocol):
    """Three nodes behind a proxy that leads to the one that writes."""

    name: str

    @property
    def nodes(self) -> Sequence[Any]:
        """The three nodes, each a ``Node``."""

    def start(self) -> None:
        """Return when a writer answers through the proxy."""

    def stop(self) -> None:
        """End everything that was started, whatever its state."""

    def database(self, node: Any = None) -> dict[str, Any]:
        """Return an entry of ``DATABASES``: of the proxy, or of one node."""

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Ask the queue's database, through the proxy."""

    def empty(self) -> None:
        """Make the queue's database anew."""

    def primary(self) -> Any:
        """Return the node that takes writes now; ``None``: none does."""

    def switch_over(self) -> None:
        """Make another node the writer, as planned."""

    def wait_complete(self, limit: float) -> None:
        """Wait, for ``limit`` seconds at most, until all three nodes are well."""

    def cut_off(self, node: Any) -> None:
        """Lose whatever is sent to a node or by it."""

    def reconnect(self, node: Any) -> None: ...

    def wait(self, what: str, limit: float, condition: Callable[[], bool]) -> None: ...
