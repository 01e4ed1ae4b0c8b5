"""Three nodes in namespaces, and the proxy of an example before them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from tests.servers.private import free_port

from .cluster import Node
from .haproxy import Proxy
from .namespaces import Namespaces
from .waiting import wait_until

N = TypeVar("N", bound=Node)


class ThreeNodes(ABC, Generic[N]):
    """What clusters have in common, whatever their engine."""

    name: str
    #: The folder of the files that are used as they are.
    example: Path
    node_names: tuple[str, str, str]

    def __init__(self, folder: Path, label: str, subnet: int) -> None:
        self.folder = folder
        self.network = Namespaces(f"{label}{subnet}-", subnet)
        self.hosts = [self.network.address(number) for number in range(1, 4)]
        self.nodes: list[N] = []
        #: Where the proxy listens, on this machine.
        self.port = free_port()
        self._proxy: Proxy | None = None

    def start(self) -> None:
        self.network.make()
        for number, name in enumerate(self.node_names, start=1):
            self.nodes.append(self._new_node(number, name))
        self._found()
        addresses = {
            name.upper(): f"{node.address[0]}:{node.address[1]}"
            for name, node in zip(self.node_names, self.nodes, strict=True)
        }
        addresses["QUEUE"] = f"127.0.0.1:{self.port}"
        self._proxy = Proxy(self.example / "haproxy.cfg", addresses, self.folder / "haproxy.log")
        self.wait("a writer behind the proxy", 120, self.answers)

    def stop(self) -> None:
        if self._proxy is not None:
            self._proxy.close()
        for node in self.nodes:
            node.kill()
        self.network.remove()

    def wait_complete(self, limit: float) -> None:
        self.wait("all three nodes", limit, lambda: self.is_complete() and self.answers())

    def cut_off(self, node: N) -> None:
        self.network.cut_off(self.nodes.index(node) + 1)

    def reconnect(self, node: N) -> None:
        self.network.reconnect(self.nodes.index(node) + 1)

    def expect_primary(self) -> N:
        found = self.primary()
        if found is None:
            raise LookupError(f"{self.name}: no node takes writes")
        return found

    def wait(self, what: str, limit: float, condition: Callable[[], bool]) -> None:
        wait_until(condition, limit, f"{self.name}: {what}")

    @abstractmethod
    def database(self, node: N | None = None) -> dict[str, Any]: ...

    @abstractmethod
    def query(self, statement: str) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def empty(self) -> None: ...

    @abstractmethod
    def primary(self) -> N | None: ...

    @abstractmethod
    def switch_over(self) -> None: ...

    @abstractmethod
    def answers(self) -> bool:
        """Return whether the proxy leads to a writer."""

    @abstractmethod
    def is_complete(self) -> bool:
        """Return whether all nodes are well, as they see each other."""

    @abstractmethod
    def _new_node(self, number: int, name: str) -> N: ...

    @abstractmethod
    def _found(self) -> None:
        """Start the nodes for the first time, until they know each other."""
