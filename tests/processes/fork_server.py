"""Forks processes that have imported Django and the product already: a tenth of a second each,
where a new interpreter takes most of one.

Run as ``python -m tests.processes.fork_server DESCRIPTOR``, of a socket on which orders come, each
with the descriptors that the process gets as 0, 1 and 2, and one that its exit status is written
to. It ends with the other end of the socket, and ends the processes then. ``ForkServer`` is the
client.

A process is forked before anything of its project is known: ``django.setup()`` runs in it, with its
own settings, and finds the modules loaded. ``/proc`` shows the command line and the environment of
the server: what looks there needs an interpreter of its own.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
from contextlib import suppress
from importlib import import_module, invalidate_caches
from pkgutil import walk_packages
from typing import Any, NoReturn

#: Apps that every project has (see ``harness``), and what a supervisor and its children import.
APPS = ("django.contrib.contenttypes", "django.contrib.auth", "steady_queue_core", "tests.faultapp")
PACKAGES = (
    "steady_queue_core.processes", "steady_queue_postgres", "steady_queue_mysql",
    "steady_queue_sqlite",
)  # fmt: skip
MODULES = (
    "django.contrib.auth.views", "django.core.cache.backends.locmem",
    "django.core.management.commands.migrate", "django.db.backends.sqlite3.base",
    "django.views.debug",
    "django.db.backends.postgresql.base", "django.templatetags.i18n",
    "mysql.connector.django.base", "steady_queue_core.connection_setup",
    "steady_queue_core.management.commands.steady_queue", "steady_queue_core.migration_guard",
    "steady_queue_core.tasks.modules",
    "tests.faultapp.effects", "tests.faultapp.mutants",
)  # fmt: skip

Order = dict[str, Any]


def preload() -> None:
    """Import what projects need; leave Django as if nothing had been set up."""
    import django
    from django.apps import AppConfig, apps
    from django.conf import settings

    backport = ("django_tasks",) if django.VERSION < (6, 0) else ()
    settings.configure(INSTALLED_APPS=APPS + backport, USE_TZ=True)
    for entry in settings.INSTALLED_APPS:
        config = AppConfig.create(entry)
        apps.app_configs[config.label], config.apps = config, apps
    apps.apps_ready = True
    for config in apps.app_configs.values():
        config.import_models()
    apps.models_ready = True
    for name in PACKAGES:
        for module in walk_packages(import_module(name).__path__, f"{name}."):
            if ".migrations" not in module.name:
                import_module(module.name)
    for name in MODULES:
        import_module(name)
    _forget_settings()


def _forget_settings() -> None:
    from django.apps import apps
    from django.conf import empty, settings
    from django.db import connections

    # Each model asks the default connection how long the name of a table may be.
    vars(connections).clear()
    connections.__init__()  # type: ignore[misc]  # as new
    settings._wrapped = empty
    apps.app_configs.clear()
    apps.apps_ready = apps.models_ready = apps.ready = False
    apps.ready_event = threading.Event()
    apps.clear_cache()


def serve(orders: socket.socket) -> Order:
    """Fork a process for each order, as long as there is somebody to give one; return in each of
    the processes what it is to do."""
    running: dict[int, tuple[int, int]] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(orders, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not orders:
                    selector.unregister(key.fileobj)
                    _tell_end(*running.pop(key.fd), key.fd)
                    continue
                text, descriptors, _, _ = socket.recv_fds(orders, 1 << 16, 4)
                if not text:
                    _leave(running)
                *streams, status = descriptors
                if (pid := os.fork()) == 0:
                    orders.close()
                    for pidfd, (_, other) in running.items():
                        os.close(pidfd)
                        os.close(other)
                    os.close(status)
                    return {**json.loads(text), "streams": streams}
                for stream in streams:
                    os.close(stream)
                pidfd = os.pidfd_open(pid)
                running[pidfd] = pid, status
                selector.register(pidfd, selectors.EVENT_READ)
                orders.sendall(pid.to_bytes(4))


def _leave(running: dict[int, tuple[int, int]]) -> NoReturn:
    """End with what was started: nobody is there to do so, however our client has ended."""
    for pid, _ in running.values():
        with suppress(ProcessLookupError):  # It may not have come to be a group yet.
            os.killpg(pid, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
    sys.exit(0)


def _tell_end(pid: int, status: int, pidfd: int) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(pidfd)
    with suppress(BrokenPipeError):  # The test that had started it is over.
        os.write(status, str(code).encode())
    os.close(status)


def run(order: Order) -> None:
    """Run ``python -m MODULE ARGUMENTS`` in this process, as if it had been started for that."""
    os.setsid()
    for number, stream in enumerate(order["streams"]):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [order["folder"], *filter(None, paths), *OTHER_PATHS]
    module, *arguments = order["command"]
    sys.argv = [module, *arguments]
    sys.orig_argv = [sys.executable, "-m", module, *arguments]
    invalidate_caches()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    OTHER_PATHS = [path for path in sys.path[1:] if path not in given]
    preload()
    gc.collect()
    gc.freeze()
    run(serve(socket.socket(fileno=int(sys.argv[1]))))
