"""``manage.py steady_queue``: run the queue's processes."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import InterfaceError, OperationalError

from ...checks import START, TAG
from ...command_line.choice import is_subcommand, may_name_subcommand
from ...configuration import Configuration, ConfigurationError
from ...configuration.option_readers import MODES
from ...configuration.processes import EXECUTORS
from ...configured_backends import own_backends
from ...errors import DialectError, MigrationsMissing, SupervisorContextError
from ...logging import FORMATS, errors_to_stderr, logging_to_stderr
from ...metrics import metrics_text
from ...printable import printable_lines
from ...processes.supervisor.drain import Drain
from ...processes.supervisor.handover import Handover
from ...processes.supervisor.invocation import Invocation
from ...processes.supervisor.launch import (
    import_tasks,
    runs_threads,
    served_databases,
    skips_recurring,
    with_changes,
)
from ...processes.supervisor.live_restart import LiveRestart
from ...processes.supervisor.pidfile import PidfileError
from ...processes.supervisor.probe_socket import ProbeSocketError
from ...processes.supervisor.supervisor import Supervisor
from ...processes.supervisor.topology import KINDS
from ...processes.supervisor.trial import is_trial
from ..reloading import Reloader

NOTHING_TO_RUN = (
    "There is nothing to run: STEADY_QUEUE has no such processes, or no task is decorated with "
    "@recurring. Leave out --only, or add what it names."
)


class Command(BaseCommand):
    """Starts the supervisor, which forks workers, dispatchers and the scheduler."""

    #: How this process was started, if it was for this command.
    invocation: Invocation | None = None
    #: Whether it knows its subcommands: the queue starts faster, and is smaller, without them.
    has_subcommands = True

    help = (
        "Runs Steady Queue: a supervisor with the workers, dispatchers and scheduler of "
        "settings.STEADY_QUEUE. TERM and INT stop it gracefully, QUIT at once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_start_arguments(parser)
        if self.has_subcommands:
            from ...command_line.parsers import add_subcommands

            add_subcommands(parser, self.add_start_arguments)

    def add_start_arguments(self, parser: CommandParser) -> None:
        """Add the options of ``start``, which are those of the command itself as well."""
        parser.add_argument(
            "--queues", help="comma-separated queues for one kind of worker, instead of those set"
        )
        parser.add_argument(
            "--exclude-queues", help="comma-separated queues that every kind of worker leaves out"
        )
        parser.add_argument(
            "--executor",
            choices=EXECUTORS,
            help="where every worker process runs its tasks: in threads, or in child processes",
        )
        parser.add_argument("--threads", type=int, help="threads of every worker process")
        parser.add_argument("--processes", type=int, help="processes of every kind of worker")
        parser.add_argument(
            "--backend",
            help="serve only the databases of these backends, by alias in TASKS, with commas",
        )
        parser.add_argument("--pidfile", help="refuse to start while another supervisor holds it")
        parser.add_argument(
            "--probe-port", type=int, help="answer /livez, /readyz and /metrics on this TCP port"
        )
        parser.add_argument(
            "--probe-address",
            help="listen for probes at this IP address, such as 0.0.0.0; 127.0.0.1 by default",
        )
        parser.add_argument(
            "--heartbeat-file", help="touch this file while the supervisor lives, for probes"
        )
        parser.add_argument(
            "--only",
            choices=sorted(KINDS),
            help="start only the workers, the dispatchers or the scheduler",
        )
        parser.add_argument(
            "--mode",
            choices=MODES,
            help="fork: a process for each worker, dispatcher and scheduler; async: a thread each",
        )
        parser.add_argument(
            "--reload",
            action="store_true",
            help="for development: run in threads, and start anew when code changes",
        )
        parser.add_argument(
            "--log-format", choices=FORMATS, help="log to the standard error in this format"
        )
        parser.add_argument(
            "--skip-recurring", action="store_true", help="do not start the scheduler"
        )
        parser.add_argument(
            "--drain",
            action="store_true",
            help="exit with 0 when nothing is left to run; recurring tasks are not scheduled",
        )
        parser.add_argument(
            "--drain-horizon",
            type=float,
            default=60.0,
            metavar="SECONDS",
            help="with --drain: also wait for jobs that are due this soon (default: 60)",
        )

    def run_from_argv(self, argv: list[str]) -> None:
        """Run as the program that this process was started for, which new code may replace."""
        self.invocation = Invocation.current()
        self.has_subcommands = may_name_subcommand(argv[2:])
        super().run_from_argv(argv)

    def check(self, *args: Any, **kwargs: Any) -> None:
        """Run the system checks; while the database is away, only those that need none.

        Django asks a MySQL server for its version when it checks models. The supervisor can wait
        for the server, which this could not.
        """
        try:
            own_backends()  # Django's own check would end in a traceback that names no alias.
            super().check(tags=[START], include_deployment_checks=True)
            super().check(*args, **kwargs)
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
        except (OperationalError, InterfaceError) as error:
            self._warn(f"Only the queue's own system checks were run: {error}")
            super().check(tags=[TAG], databases=[])

    def execute(self, *args: Any, **options: Any) -> Any:
        # Whoever looks after the queue does so because something may be wrong with the project.
        if is_subcommand(options):
            options["skip_checks"] = True
        return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        if is_subcommand(options):
            from ...command_line.runner import run_subcommand

            run_subcommand(options, self.stdout, self.stderr)
            return
        form = options["log_format"]
        with logging_to_stderr(form) if form else errors_to_stderr():
            self._run(**options)

    def _run(self, **options: Any) -> None:
        handover = Handover.take()
        try:
            change = partial(
                with_changes,
                queues=options["queues"],
                exclude_queues=options["exclude_queues"],
                executor=options["executor"],
                threads=options["threads"],
                processes=options["processes"],
                pidfile=options["pidfile"],
                probe_port=options["probe_port"],
                probe_address=options["probe_address"],
                heartbeat_file=options["heartbeat_file"],
                mode="async" if options["reload"] else options["mode"],
            )
            settings = Configuration.load()
            configuration = change(settings)
            import_tasks(configuration)
            drain = None
            if options["drain"]:
                drain = Drain(timedelta(seconds=options["drain_horizon"]))
            databases = served_databases(settings, options["backend"])
            threads = runs_threads(configuration)
            live_restart = None
            if self.invocation is not None and not options["reload"]:
                live_restart = LiveRestart(self.invocation, threads=threads, handover=handover)
            supervisor = Supervisor(
                configuration,
                {using: change(each) for using, each in databases.items()},
                drain=drain,
                only=options["only"],
                skip_recurring=options["skip_recurring"] or skips_recurring(),
                say=self._say,
                threads=threads,
                live_restart=live_restart,
                handover=handover,
                metrics=metrics_text,
            )
            if not supervisor.fleets:
                raise CommandError(NOTHING_TO_RUN)
            if live_restart is not None and is_trial():
                live_restart.report()
                return
            reloader = Reloader(supervisor.stop, self._say) if options["reload"] else None
            if reloader is not None:
                reloader.watch()
            supervisor.run()
            if reloader is not None and reloader.code_has_changed:
                reloader.start_anew()
            if supervisor.is_to_restart and self.invocation is not None:
                self._start_anew(self.invocation)
            if supervisor.left_running:
                self._leave()
        except (
            ConfigurationError,
            DialectError,
            MigrationsMissing,
            PidfileError,
            ProbeSocketError,
            SupervisorContextError,
        ) as error:
            raise CommandError(printable_lines(str(error))) from error

    def _start_anew(self, invocation: Invocation) -> None:
        self._flush()
        try:
            invocation.execute()
        except OSError as error:
            raise CommandError(f"The new code could not be started: {error}") from error

    def _leave(self) -> None:
        # Python would wait for threads that hang in a task, and no code can end them.
        self._flush()
        os._exit(0)

    def _flush(self) -> None:
        logging.shutdown()
        for stream in (self.stdout, self.stderr, sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()

    def _say(self, line: str) -> None:
        # The queue must not depend on its output, which may be closed, full or ASCII only.
        with suppress(OSError, ValueError, AttributeError):
            self.stdout.write(printable_lines(line))
            self.stdout.flush()

    def _warn(self, line: str) -> None:
        with suppress(OSError, ValueError, AttributeError):
            self.stderr.write(printable_lines(line))
