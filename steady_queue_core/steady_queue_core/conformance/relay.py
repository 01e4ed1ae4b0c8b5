"""A network that can go silent: a relay in front of a server that can stop forwarding.

Connections stay open, as when a host is gone or a firewall has dropped them silently.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any


class Relay:
    """Listens on ``port`` of the loopback interface, and forwards to a server."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._flowing = Event()
        self._flowing.set()
        self._closed = False
        self._forgotten: list[Event] = []
        self._sockets = [self._listener]
        self._threads: list[Thread] = []
        self._begin(self._accept)

    def silence(self) -> None:
        """Stop forwarding. Connections are accepted and stay open."""
        self._flowing.clear()

    def resume(self) -> None:
        """Forward everything held back, and everything that follows."""
        self._flowing.set()

    def forget(self) -> None:
        """Stop forwarding for present connections; new ones work."""
        former, self._flowing = self._flowing, Event()
        self._forgotten.append(former)
        self._flowing.set()
        former.clear()

    def close(self) -> None:
        """Close every connection."""
        self._closed = True
        for flowing in [*self._forgotten, self._flowing]:
            flowing.set()
        for each in list(self._sockets):
            _end(each)
        for thread in list(self._threads):
            thread.join(5.0)
        for each in list(self._sockets):
            each.close()

    def _begin(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._closed:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                self._begin(self._serve, client, self._flowing)

    def _serve(self, client: socket.socket, flowing: Event) -> None:
        flowing.wait()
        with suppress(OSError):
            server = socket.create_connection(self._server)
            self._sockets.append(server)
            self._begin(self._pass_on, server, client, flowing)
            self._pass_on(client, server, flowing)

    def _pass_on(self, source: socket.socket, target: socket.socket, flowing: Event) -> None:
        with suppress(OSError):
            while not self._closed and (data := source.recv(65536)):
                flowing.wait()
                target.sendall(data)
            flowing.wait()
        _end(source)
        _end(target)


def _end(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
