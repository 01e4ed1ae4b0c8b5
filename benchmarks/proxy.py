"""Counts round trips, which servers do not, in a proxy between clients and server."""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any

CHUNK = 2**18


class Proxy:
    """Relays between clients and a server, and counts the round trips.

    A client that speaks after the server has spoken begins a round trip, however much it says and
    in however many pieces. Measures of time do not go this way.
    """

    def __init__(self, host: str, port: int) -> None:
        self.round_trips = 0
        self._server = (host, port)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A thread that waits in accept does not notice a mere close.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(self._server) as server:
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with selectors.DefaultSelector() as selector:
                selector.register(client, selectors.EVENT_READ, server)
                selector.register(server, selectors.EVENT_READ, client)
                self._converse(selector, client)

    def _converse(self, selector: selectors.BaseSelector, client: socket.socket) -> None:
        answered = True
        while True:
            for key, _ in selector.select():
                source: Any = key.fileobj
                data = source.recv(CHUNK)
                if not data:
                    return
                if source is client and answered:
                    with self._lock:
                        self.round_trips += 1
                answered = source is not client
                key.data.sendall(data)
