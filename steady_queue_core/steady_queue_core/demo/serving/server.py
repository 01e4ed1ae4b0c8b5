"""Server: the web server of the demo, in threads of this process."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import TCPServer
from threading import Thread

from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler

from ..performance import Refused

#: The only address that it listens at: nobody reaches it from another computer.
ADDRESS = "127.0.0.1"


class Server(ThreadedWSGIServer):
    """Has a port from the beginning, and answers later."""

    def __init__(self, port: int) -> None:
        """Listen at ``port``, or at a free one for 0. Raises ``Refused``."""
        try:
            super().__init__((ADDRESS, port), WSGIRequestHandler)
        except OSError as error:
            raise Refused(_explanation(port, error)) from error

    def server_bind(self) -> None:
        # http.server would ask the name service for a name of the address.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.server_address[1]
        self.setup_environ()

    @property
    def is_alive(self) -> bool:
        """Whether it answers."""
        return self._thread.is_alive()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Answer within the block."""
        # These need the project's settings.
        from django.contrib.staticfiles.handlers import StaticFilesHandler
        from django.core.wsgi import get_wsgi_application

        self.set_app(StaticFilesHandler(get_wsgi_application()))
        self._thread = Thread(target=self.serve_forever, name="web server", daemon=True)
        self._thread.start()
        try:
            yield
        finally:
            self.shutdown()
            self.server_close()


def _explanation(port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} of {ADDRESS} is taken: another program listens there. Choose another one "
            "with --port, or leave --port out for a free one."
        )
    if error.errno == errno.EACCES:
        return (
            f"you may not listen at port {port} of {ADDRESS}. Choose one from 1024 on with --port, "
            "or leave --port out for a free one."
        )
    return f"cannot listen at port {port} of {ADDRESS}: {error.strerror or error}."
