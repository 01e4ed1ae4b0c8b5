"""A relay before a server that counts the commands: each is a round trip."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

COM_QUERY = 3


class CountingProxy:
    """Listens on ``port``; counts the packets that begin a command."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.commands = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            self._relay(client, server, Packets(self._count).feed)
            self._relay(server, client, lambda data: None)

    def _relay(
        self, source: socket.socket, target: socket.socket, look: Callable[[bytes], None]
    ) -> None:
        def run() -> None:
            try:
                while data := source.recv(65536):
                    look(data)
                    target.sendall(data)
            except OSError:
                pass
            finally:
                for end in (source, target):
                    end.close()

        threading.Thread(target=run, daemon=True).start()

    def _count(self, number: int, payload: bytes) -> None:
        # The client's greeting has the number 1; commands begin anew.
        if number == 0 and payload[:1] == bytes([COM_QUERY]):
            self.commands += 1


class Packets:
    """Cuts a stream into packets: three bytes of length, one of number, and the payload."""

    def __init__(self, found: Callable[[int, bytes], None]) -> None:
        self._found = found
        self._rest = b""

    def feed(self, data: bytes) -> None:
        self._rest += data
        while len(self._rest) >= 4:
            length = int.from_bytes(self._rest[:3], "little")
            if len(self._rest) < 4 + length:
                return
            self._found(self._rest[3], self._rest[4 : 4 + length])
            self._rest = self._rest[4 + length :]
