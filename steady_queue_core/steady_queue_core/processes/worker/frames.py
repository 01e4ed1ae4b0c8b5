"""Frames: byte strings with their lengths, on a socket between a worker and a task process."""

from __future__ import annotations

import socket
import struct

_LENGTH = struct.Struct("!Q")
_CHUNK = 65_536


class Frames:
    """Sends and receives frames, none longer than ``largest`` bytes, over a socket."""

    def __init__(self, connection: socket.socket, largest: int) -> None:
        connection.settimeout(None)  # The project may have set a default.
        self.connection, self.largest = connection, largest
        self._received = bytearray()

    def send(self, data: bytes) -> None:
        """Send a frame. Raises ``OSError`` if the other side is gone."""
        self.connection.sendall(_LENGTH.pack(len(data)) + data)

    def receive(self) -> bytes | None:
        """Wait for a frame; ``None``: the other side sends no more. Raises ``OSError``, and
        ``ValueError`` for a frame that is too long."""
        if not self._fill(_LENGTH.size):
            return None
        [length] = _LENGTH.unpack_from(self._received)
        if length > self.largest:
            raise ValueError(f"a frame of {length} bytes, where at most {self.largest} may come")
        end = _LENGTH.size + length
        if not self._fill(end):
            return None
        frame = bytes(self._received[_LENGTH.size : end])
        del self._received[:end]
        return frame

    def _fill(self, size: int) -> bool:
        """Wait until so many bytes have been received; return ``False`` if they never will be."""
        while len(self._received) < size:
            chunk = self.connection.recv(_CHUNK)
            if not chunk:
                return False
            self._received += chunk
        return True
