"""Runs the demo."""

from __future__ import annotations

import time
from contextlib import closing
from datetime import datetime

from .interruption import raise_if_asked
from .performance import perform, say
from .project import Project
from .supervision import Supervision

#: Seconds that the tasks may take; they need about five.
PATIENCE = 15.0
#: Seconds between two looks at the tables.
PERIOD = 0.1


def run(*, keep: bool) -> int:
    """Run the demo; return 0 if all went as planned, else 1."""
    began = time.monotonic()
    interrupted = "\nInterrupted: nothing is checked."
    return perform(
        Project, lambda project: _run_in(project, began), keep=keep, when_interrupted=interrupted
    )


def _run_in(project: Project, began: float) -> int:
    # These need the project's settings.
    from ..configuration import Configuration
    from . import effects, plan
    from .observer import Observer
    from .verdict import Verdict

    zone = datetime.now().astimezone().tzinfo
    assert zone is not None
    with closing(Supervision(project)) as supervision:
        supervision.await_worker()
        print()
        planned, together = plan.enqueue(), plan.enqueue_together()
        observer = Observer(zone, say)
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
        say(line)
    seconds = time.monotonic() - began
    if not verdict.differences:
        say(f"\n  OK in {seconds:.1f} s")
        return 0
    say(f"\n  FAILED in {seconds:.1f} s: {verdict.differences} of {len(verdict.lines)} differ")
    say("  The processes wrote:")
    for line in project.last_written():
        say(f"    {line}")
    return 1
