"""The queue as part of another process, such as a web server: threads, and no signals."""

from __future__ import annotations

import atexit
import threading
from datetime import timedelta
from types import TracebackType

from django.apps import apps

from .configuration import Configuration
from .logging import about, get_logger
from .processes.supervisor.launch import choose_database, import_tasks, require_supervisor_context
from .processes.supervisor.supervisor import Supervisor

logger = get_logger("steady_queue.supervisor")


class EmbeddedQueue:
    """Runs what ``STEADY_QUEUE`` says in threads of this process, from ``start`` to ``stop``.

    ``backend`` names one in ``TASKS`` where those use several databases. ``start`` may be called
    from ``AppConfig.ready``. When Python exits, the queue is stopped; a process that is forked
    later has none.
    """

    def __init__(self, backend: str | None = None) -> None:
        self.backend = backend
        self._supervisor: Supervisor | None = None
        self._thread: threading.Thread | None = None
        self._stopping = False

    def start(self) -> None:
        """Start the threads, and return. Once the apps are loaded, raises what
        ``manage.py steady_queue`` refuses to start for: ``ConfigurationError``,
        ``SupervisorContextError``."""
        if self.running:
            return
        require_supervisor_context(standalone=False)
        self._stopping = False
        self._supervisor = self._build() if apps.ready else None
        self._thread = threading.Thread(target=self._run, name="steady-queue-main", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def stop(self, timeout: float | timedelta | None = None) -> bool:
        """Stop gracefully: running tasks may go on for ``shutdown_timeout``; return when all have
        ended, or after ``timeout`` seconds: ``False``, the stop goes on."""
        self._stopping = True
        atexit.unregister(self.stop)
        if self._supervisor is not None:
            self._supervisor.stop()
        if self._thread is not None:
            seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
            self._thread.join(seconds)
        return not self.running

    @property
    def running(self) -> bool:
        """Whether the queue runs, or is about to stop."""
        return self._thread is not None and self._thread.is_alive()

    def __enter__(self) -> EmbeddedQueue:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _build(self) -> Supervisor:
        options = Configuration.load()
        import_tasks(options)
        return Supervisor(
            options,
            choose_database(self.backend),
            say=self._say,
            threads=True,
            standalone=False,
        )

    def _say(self, line: str) -> None:
        logger.info("%s", line, extra=about("supervisor.banner"))

    def _run(self) -> None:
        try:
            apps.ready_event.wait()
            if self._supervisor is None:
                self._supervisor = self._build()
            if not self._stopping:
                self._supervisor.run()
        except Exception:
            logger.critical(
                "The embedded queue has ended", exc_info=True, extra=about("supervisor.failed")
            )
