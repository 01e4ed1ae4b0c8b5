"""Runs the queue in threads of another process, such as a web server."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - what it does at the exit is to come after ours
import logging
import threading
from datetime import timedelta
from functools import cache
from types import TracebackType
from weakref import WeakSet

from django.apps import apps

from .configuration import Configuration
from .internal_errors import log_internal_error
from .logging import about, get_logger
from .processes.supervisor.launch import (
    import_tasks,
    require_supervisor_context,
    served_databases,
    skips_recurring,
)
from .processes.supervisor.supervisor import Supervisor

logger = get_logger("steady_queue.supervisor")

#: The queues that were started here.
_started: WeakSet[EmbeddedQueue] = WeakSet()


class EmbeddedQueue:
    """Runs the configuration in ``STEADY_QUEUE`` in threads, from ``start`` to ``stop``.

    ``backend`` is an alias in ``TASKS``, or several with commas between, whose databases are
    served; ``None``: those of all backends.
    ``start`` may be called from ``AppConfig.ready``. The queue stops when Python exits, as soon as
    the main thread has ended. A process that is forked later has no queue.
    """

    def __init__(self, backend: str | None = None) -> None:
        self.backend = backend
        self._supervisor: Supervisor | None = None
        self._thread: threading.Thread | None = None
        self._stopping = False

    def start(self) -> None:
        """Start the threads and return.

        Raises ``SupervisorContextError`` and, if the apps are loaded, ``ConfigurationError``, like
        ``manage.py steady_queue``.
        """
        if self.running:
            return
        require_supervisor_context(standalone=False)
        self._stopping = False
        self._supervisor = self._build() if apps.ready else None
        self._thread = threading.Thread(target=self._run, name="steady-queue-main", daemon=True)
        self._thread.start()
        _stop_at_exit(self)

    def stop(self, timeout: float | timedelta | None = None) -> bool:
        """Stop gracefully, giving running tasks ``shutdown_timeout`` to finish.

        Returns ``False`` if the queue is still stopping after ``timeout`` seconds.
        """
        self._stopping = True
        if self._supervisor is not None:
            self._supervisor.stop()
        if self._thread is not None:
            seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
            self._thread.join(seconds)
        return not self.running

    @property
    def running(self) -> bool:
        """Whether the queue is running or stopping."""
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
            served_databases(options, self.backend),
            skip_recurring=skips_recurring(),
            say=self._say,
            threads=True,
            standalone=False,
        )

    def _say(self, line: str) -> None:
        logger.info("%s", line, extra=about("supervisor.banner"))

    def _run(self) -> None:
        try:
            # It is never set if an app cannot be loaded.
            while not self._stopping and not apps.ready_event.wait(0.1):
                pass
            if self._supervisor is None and not self._stopping:
                self._supervisor = self._build()
            if self._supervisor is not None and not self._stopping:
                self._supervisor.run()
        except Exception:
            log_internal_error(
                logger,
                "The embedded queue has ended",
                level=logging.CRITICAL,
                extra=about("supervisor.failed"),
            )


def _stop_at_exit(queue: EmbeddedQueue) -> None:
    """Stop the queue when Python exits, as soon as the main thread has ended."""
    _started.add(queue)
    _register()


@cache
def _register() -> None:
    # Before other threads are waited for, and before executors take no more calls, which tasks
    # need: functions of atexit are called after both.
    getattr(threading, "_register_atexit", atexit.register)(_stop_all)


def _stop_all() -> None:
    for queue in list(_started):
        if queue.running:
            queue.stop()
