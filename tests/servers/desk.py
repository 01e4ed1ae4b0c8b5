"""A desk in one process at which others ask: the workers of pytest-xdist ask for servers."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from secrets import compare_digest, token_hex
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any

from .fleet import Unusable

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Place:
    """Where a desk is, and the word by which it knows who may ask."""

    port: int
    word: str

    def ask(self, question: Any) -> Any:
        """Return the answer, however long it takes; raise ``Unusable`` if it is a refusal."""
        with socket.create_connection((LOOPBACK, self.port)) as line, line.makefile("rw") as text:
            print(json.dumps([self.word, question]), file=text, flush=True)
            answer = text.readline()
        if not answer:
            raise Unusable("The process that has the servers does not answer.")
        found = json.loads(answer)
        if "refusal" in found:
            raise Unusable(found["refusal"])
        return found["answer"]


class Desk:
    """Has ``answer`` called for each question, in a thread of its own; all is JSON."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self._server = _Server((LOOPBACK, 0), _Handler)
        self.place = Place(self._server.server_address[1], token_hex())
        self._server.answer, self._server.word = answer, self.place.word
        self._thread = Thread(target=self._server.serve_forever, args=[0.1], daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer nobody any more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingTCPServer):
    # Who still asks at the end is a worker that has been told to end.
    daemon_threads = True
    block_on_close = False
    server_address: tuple[str, int]
    answer: Callable[[Any], Any]
    word: str


class _Handler(StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        word, question = json.loads(self.rfile.readline())
        if not compare_digest(word, self.server.word):
            return
        try:
            answer = {"answer": self.server.answer(question)}
        except Unusable as error:
            answer = {"refusal": str(error)}
        self.wfile.write(json.dumps(answer).encode() + b"\n")
