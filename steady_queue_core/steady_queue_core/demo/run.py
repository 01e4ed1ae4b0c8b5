"""Runs the demo."""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime, tzinfo

from django.core.exceptions import ImproperlyConfigured

from ..printable import printable_lines
from .interruption import interrupt_at_signals, raise_if_asked
from .project import Project
from .supervision import Supervision

#: Seconds that the tasks may take; they need about five.
PATIENCE = 15.0
#: Seconds between two looks at the tables.
PERIOD = 0.1
#: The shell's exit status for a program that Ctrl-C ended.
INTERRUPTED = 130

NO_FORK = (
    "this system cannot fork processes, which the queue's supervisor does. Linux, macOS and the "
    "BSDs can."
)


def run(*, keep: bool) -> int:
    """Run the demo; return 0 if all went as planned, else 1."""
    if not hasattr(os, "fork"):
        print(f"steady-queue demo: {NO_FORK}", file=sys.stderr)
        return 1
    began = time.monotonic()
    interrupt_at_signals()
    zone = datetime.now().astimezone().tzinfo
    assert zone is not None
    project = Project()
    try:
        problem = _prepare(project)
        if problem is not None:
            print(f"steady-queue demo: {problem}", file=sys.stderr)
            return 1
        return _run_in(project, zone, began)
    except KeyboardInterrupt:
        print("\nInterrupted: nothing is checked.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe. Python would complain when it flushes the output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    finally:
        if told := project.end(keep=keep):
            print(told)


def _prepare(project: Project) -> str | None:
    """Make the project; return the problem that prevents it from running, if any."""
    try:
        from .. import compat  # noqa: F401  (its import says whether there is a task framework)

        project.make()
        project.enter()
    except ImproperlyConfigured as error:
        return str(error)
    return None


def _run_in(project: Project, zone: tzinfo, began: float) -> int:
    # These need the project's settings.
    from ..configuration import Configuration
    from . import effects, plan
    from .observer import Observer
    from .verdict import Verdict

    with Supervision(project) as supervision:
        supervision.await_worker()
        print()
        planned, together = plan.enqueue(), plan.enqueue_together()
        observer = Observer(zone, _say)
        wanted = {each.job_id for each in planned}
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and supervision.exit_code is None:
            raise_if_asked()
            observer.look()
            plan.cancel_what_runs(planned)
            ticks = len(observer.done.get("tick", ()))
            has_all = wanted <= observer.ended and "ship" in observer.done
            if has_all and ticks >= plan.TICKS and together.has_ended():
                break
            time.sleep(PERIOD)
        exit_code = supervision.stop()
        observer.look()
    verdict = Verdict(
        planned,
        together,
        effects.read(project.effects),
        supervisor_exit=exit_code,
        threads=sum(worker.threads for worker in Configuration.load().workers),
    ).reach()
    print()
    for line in verdict.lines:
        _say(line)
    seconds = time.monotonic() - began
    if not verdict.differences:
        _say(f"\n  OK in {seconds:.1f} s")
        return 0
    _say(f"\n  FAILED in {seconds:.1f} s: {verdict.differences} of {len(verdict.lines)} differ")
    _say("  The processes wrote:")
    for line in project.supervisor_log.read_text(errors="replace").splitlines()[-40:]:
        _say(f"    {line}")
    return 1


def _say(line: str) -> None:
    print(printable_lines(line), flush=True)
