"""The console script ``steady-queue``: the demo, and shortcuts to the commands of ``manage.py``."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from . import __version__, heartbeat_check

USAGE = """\
usage: steady-queue demo [--keep]       watch tasks run in a throw-away project, and check them
       steady-queue demo --serve        the same with a steady load, and the admin in a browser
       steady-queue start [options]     run the queue of the project in this folder
       steady-queue status              show its queues, schedules and processes at a glance
       steady-queue watch               the same, again and again
       steady-queue queues              list its queues
       steady-queue jobs                list its jobs, by state, queue, task, time
       steady-queue show ID             show a job with its arguments, result and errors
       steady-queue retry               run failed jobs again
       steady-queue discard             delete jobs
       steady-queue cancel              cancel jobs
       steady-queue run-now             run jobs at once that wait for their time
       steady-queue move                give waiting jobs another queue or priority
       steady-queue reschedule          let waiting jobs be due at another time
       steady-queue copy                enqueue jobs again, with the same calls
       steady-queue enqueue PATH        enqueue a task
       steady-queue pause QUEUE         let workers take no jobs from a queue
       steady-queue resume QUEUE        let them take jobs again
       steady-queue processes           list its processes
       steady-queue schedules           list its recurring tasks, run them, switch them off
       steady-queue limits              list what limits its jobs
       steady-queue metrics             print metrics for Prometheus
       steady-queue doctor [JOB_ID]     say why it, or a job, is not running
       steady-queue clear               delete jobs that have ended long ago
       steady-queue health              exit with 0 if the queue does its work
       steady-queue take-over           let migrate work where the package steady-queue was
       steady-queue completion SHELL    print a script for bash, zsh or fish
       steady-queue health --heartbeat-file PATH
                                        exit with 0 if a supervisor touches this file
       steady-queue --version
       steady-queue --help

'steady-queue start' is 'manage.py steady_queue start', and so on: they need a manage.py in this
folder, or the variable DJANGO_SETTINGS_MODULE. 'steady-queue status --help' lists the options of
a subcommand.
"""

NO_PROJECT = """\
steady-queue: there is no project here. Go to the folder of its manage.py, or set
DJANGO_SETTINGS_MODULE. Without a project there is 'steady-queue demo'.
"""

#: The command of manage.py.
COMMAND = "steady_queue"
#: The exit status of argparse for wrong usage.
WRONG_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given:
        sys.stderr.write(USAGE)
        return WRONG_USAGE
    command, *rest = given
    if command in ("-h", "--help", "help"):
        sys.stdout.write(USAGE)
        return 0
    if command == "--version":
        sys.stdout.write(f"steady-queue {__version__}\n")
        return 0
    if command == "demo":
        return _demo(rest)
    if command == "health" and heartbeat_check.is_asked_for(rest):
        return heartbeat_check.run(rest)
    return _in_project(rest if command == "start" else given)


def _demo(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="steady-queue demo",
        description="Makes a throw-away project with an SQLite file, runs tasks in it through real "
        "processes, prints what happens, and checks it. Exits with 0 only if all went as planned.",
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep the project's folder, and say where it is"
    )
    parser.add_argument(
        "--serve",
        action="store_true",
        help="go on with a steady load instead, and show the admin at 127.0.0.1, until Ctrl-C",
    )
    parser.add_argument(
        "--port", type=_port, metavar="N", help="with --serve: listen there, not at a free port"
    )
    parser.add_argument(
        "--seconds", type=_seconds, metavar="N", help="with --serve: end by itself after so long"
    )
    options = parser.parse_args(arguments)
    if options.serve:
        from .demo import serve

        return serve(keep=options.keep, port=options.port or 0, seconds=options.seconds)
    for name in ("port", "seconds"):
        if getattr(options, name) is not None:
            parser.error(f"--{name} is for --serve")
    from .demo import run

    return run(keep=options.keep)


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text) < 65_536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port: these are numbers from 1 to 65535")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if 0 < seconds < math.inf:
        return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds greater than 0")


def _in_project(arguments: list[str]) -> int:
    if Path("manage.py").is_file():
        sys.stdout.flush()
        # Replaces this process, so that signals reach the supervisor and its exit status is ours.
        os.execv(sys.executable, [sys.executable, "manage.py", COMMAND, *arguments])
    if not os.environ.get("DJANGO_SETTINGS_MODULE"):
        sys.stderr.write(NO_PROJECT)
        return WRONG_USAGE
    from django.core.management import execute_from_command_line

    sys.path.insert(0, os.getcwd())
    execute_from_command_line(["steady-queue", COMMAND, *arguments])
    return 0
