"""Cells of what the scheduler calls: a run that goes wrong there is left out, and no other one."""

from __future__ import annotations

from collections.abc import Sequence

from ..processes.harness import Project
from ..processes.scenarios import stop_all
from .app.switch import ERRORS
from .fault import Fault
from .projects import MODULES, comes_true, project
from .report import Report

APP = "tests.faults.app.schedules"
#: The places without what the name of each begins with.
PLACES = {
    *(f"{place}, {where}"
      for place in ("concurrency key", "unique key", "rate key", "middleware")
      for where in ("in code", "stored")),
    "instance among the arguments", "receiver of task_enqueued", "receiver of recurring_enqueued",
    "hook of internal errors",
}  # fmt: skip


class Schedules:
    """A project whose recurring tasks are due each second."""

    def __init__(self, project: Project) -> None:
        self.project, self.fault = project, Fault(project.folder)
        self.keys: set[str] = set(project.client.call(f"{APP}.store"))
        self.supervisor = project.start()
        self.supervisor.wait_ready()

    def cells(self, error: str) -> list[str]:
        """Have an error raised at all places, each in the runs of tasks of its own; return what is
        wrong then."""
        children, before = self.supervisor.children(), self._runs()
        with self.fault.at("schedule: *", error):
            comes_true(lambda: self._met() >= PLACES)
            wrong = [f"{place}: nothing was raised there" for place in PLACES - self._met()]
            if not comes_true(lambda: "healthy" in self._grown(before)):
                wrong.append("nor was another task enqueued")
        before = self._runs()
        comes_true(lambda: self._grown(before) >= self.keys)
        wrong += [f"{key}: is enqueued no more" for key in self.keys - self._grown(before)]
        wrong += [f"{key}: there is no job for a run" for key in self._without_job()]
        if self.supervisor.children() != children:
            wrong.append("processes have ended")
        return [f"{error}: {each}" for each in wrong]

    def _met(self) -> set[str]:
        return {name.removeprefix("schedule: ") for name in self.fault.met()}

    def _grown(self, before: dict[str, int]) -> set[str]:
        """Return the tasks of which there are more runs than before."""
        return {key for key, count in self._runs().items() if count > before.get(key, 0)}

    def _runs(self) -> dict[str, int]:
        return dict(
            self.project.query(
                "SELECT task_key, count(*) FROM steady_queue_recurring_executions GROUP BY task_key"
            )
        )

    def _without_job(self) -> list[str]:
        query = "SELECT task_key FROM steady_queue_recurring_executions WHERE job_id IS NULL"
        return [key for (key,) in self.project.query(query)]


def sweep(database: str, errors: Sequence[str] = tuple(ERRORS), *, mutant: str = "") -> Report:
    """Run the cells of these errors."""
    modules = (*MODULES, APP)
    with (
        Report.of(database, "schedules") as report,
        project(database, modules=modules, mutant=mutant) as made,
    ):
        schedules = Schedules(made)
        for error in errors:
            report.add(schedules.cells(error), cells=len(PLACES))
        stop_all(made)
    return report
