"""The HTTP server of the probe."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Timer
from time import monotonic
from typing import Any, NamedTuple

from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...project_code import contained

logger = get_logger("steady_queue.process")

#: Most connections at once; for another one, that is cut off which has been sending its request for
#: longest.
MOST_REQUESTS = 16
#: Most requests at once whose answers take time; more are turned away.
MOST_LONG = 8
#: Seconds that a connection may wait for another one to end.
PATIENCE = 0.5
#: Seconds that a request may take in all, its answer included.
TIME_LIMIT = 15.0


class Answer(NamedTuple):
    """What a path is answered with."""

    status: int
    body: bytes
    content_type: str = "application/json"

    @classmethod
    def of(cls, problems: list[str], **details: object) -> Answer:
        """Return an answer that says whether there are problems, and which."""
        told = {"ok": not problems, **details, "problems": problems}
        return cls(503 if problems else 200, (json.dumps(told) + "\n").encode())


#: Called with the Accept header of the request.
Route = Callable[[str | None], Answer]
#: The path that is answered at once, however many others are asked for.
AT_ONCE = "/livez"


class ProbeServer(ThreadingHTTPServer):
    """Answers GET and HEAD for a few paths, each request in a thread of its own."""

    daemon_threads = True

    def __init__(self, descriptor: int, routes: Mapping[str, Route]) -> None:
        """``descriptor``: of a listening socket, which stays open."""
        listening = socket.socket(fileno=os.dup(descriptor))
        super().__init__(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.routes = routes
        self.long = BoundedSemaphore(MOST_LONG)
        self._free = BoundedSemaphore(MOST_REQUESTS)
        #: The connections that have not sent their whole request, the oldest first.
        self._sending: dict[socket.socket, None] = {}

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a new thread, in place of a slow client if there are too many."""
        if not self._free.acquire(blocking=False) and not self._make_room():
            self.shutdown_request(request)
            return
        self._sending[request] = None
        super().process_request(request, client_address)

    def _make_room(self) -> bool:
        for slow in list(self._sending)[:1]:
            self.has_sent(slow)
            _cut_off(slow)
        return self._free.acquire(timeout=PATIENCE)

    def has_sent(self, request: socket.socket) -> None:
        """Take note that a client has sent its request, or will not."""
        self._sending.pop(request, None)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, within the time limit however slowly the client sends and reads."""
        timer = Timer(TIME_LIMIT, _cut_off, [request])
        timer.daemon = True
        timer.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            timer.cancel()
            self.has_sent(request)
            self._free.release()

    def await_answers(self, seconds: float) -> None:
        """Wait until all requests that were accepted are answered, or so many seconds."""
        deadline = monotonic() + seconds
        for _ in range(MOST_REQUESTS):
            if not self._free.acquire(timeout=max(0.0, deadline - monotonic())):
                return

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that go away."""


class _Handler(BaseHTTPRequestHandler):
    server: ProbeServer
    server_version, sys_version = "steady-queue", ""
    #: Seconds without a byte of the client.
    timeout = 5

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        self.server.has_sent(self.connection)
        status, body, content_type = self._found()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _found(self) -> Answer:
        path = self.path.partition("?")[0]
        route = self.server.routes.get(path)
        if route is None:
            known = ", ".join(self.server.routes)
            return Answer(404, f"There are {known}.\n".encode(), "text/plain; charset=utf-8")
        if path == AT_ONCE:
            return self._told_by(route)
        if not self.server.long.acquire(blocking=False):
            return Answer.of(["too many requests at once"])
        try:
            return self._told_by(route)
        finally:
            self.server.long.release()

    def _told_by(self, route: Route) -> Answer:
        try:
            return contained(route, self.headers.get("Accept"))
        except Exception as error:
            log_internal_error(logger, "A probe could not be answered", extra=about("probe.failed"))
            return Answer.of([f"{type(error).__name__}: see the log"])

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: probes come every few seconds."""


def _cut_off(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
