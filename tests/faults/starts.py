"""Cells of hooks: processes whose hooks go wrong start, work, and stop like any other."""

from __future__ import annotations

from collections.abc import Sequence

from ..processes.harness import Project
from .app.switch import ERRORS
from .fault import Fault
from .places import HOOKS
from .projects import MODULES, PATIENCE, comes_true, project
from .report import Report

#: Has a recurring task, so that there is a scheduler.
APP = "tests.faults.app.yearly"


def cells(made: Project, fault: Fault, error: str) -> list[str]:
    """Start and stop a project all of whose hooks raise an error; return what is wrong then."""
    with fault.at("hook: *", error):
        supervisor, wrong = made.start(), []
        try:
            supervisor.wait_ready(seconds=PATIENCE)
        except AssertionError as unready:
            supervisor.destroy()
            return [f"{error}: {unready}"]
        children = supervisor.children()
        made.enqueue("tests.faults.app.tasks:work", *[[]] * 3)
        if not comes_true(lambda: made.unfinished() == 0):
            wrong.append("jobs have not ended")
        if supervisor.children() != children:
            wrong.append("processes have ended")
        if (code := supervisor.stop(seconds=PATIENCE)) != 0:
            wrong.append(f"the supervisor has ended with {code}")
    if left := made.count("processes"):
        wrong.append(f"{left} processes are still registered")
    missed = {f"hook: {name}" for name in HOOKS} - fault.met()
    wrong += [f"{name}: nothing was raised there" for name in sorted(missed)]
    return [f"{error}: {each}" for each in wrong]


def sweep(database: str, errors: Sequence[str] = tuple(ERRORS), *, mutant: str = "") -> Report:
    """Run the cells of these errors."""
    modules = (*MODULES, APP)
    with (
        Report.of(database, "starts") as report,
        project(database, "processes", modules, mutant) as made,
    ):
        fault = Fault(made.folder)
        for error in errors:
            report.add(cells(made, fault, error), cells=len(HOOKS))
    return report
