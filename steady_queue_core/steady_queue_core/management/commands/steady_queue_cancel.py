"""``manage.py steady_queue_cancel``: cancel jobs that wait or run."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, InterfaceError

from ...command_line.databases import DatabaseChoice
from ...command_line.exit_codes import WRONG_USAGE, Refusal
from ...command_line.job_ids import JobId, chosen_backend
from ...configuration import Configuration, ConfigurationError
from ...configuration.errors import suggest
from ...errors import DialectError, MigrationsMissing
from ...models import Job
from ...models.execution import WAITING
from ...models.job_queryset import JobQuerySet
from ...models.operations.cancel import STATES
from ...printable import printable_lines
from ...processes.supervisor.launch import import_tasks
from ...tasks.registry import registered_tasks


class Command(BaseCommand):
    """Cancels jobs by their ids, their task or their queue."""

    help = (
        "Cancels jobs: those that wait fail with TaskCancelled at once, and the tasks of those "
        "that run are interrupted. Asks first, unless the jobs are named by their ids."
    )
    #: Jobs may have to be stopped because something in the project is wrong.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", type=JobId.read, metavar="ID", help="ids of jobs")
        parser.add_argument("--task", help="jobs of the task with this path: shop.tasks.send")
        parser.add_argument("--queue", help="jobs of this queue; with --task, those of both")
        parser.add_argument("--backend", help="alias in TASKS, where several databases are used")
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would be cancelled, cancel nothing"
        )
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, **options: Any) -> None:
        ids, task, queue = options["ids"], options["task"], options["queue"]
        if bool(ids) == bool(task or queue):
            raise CommandError(
                "Say which jobs: either their ids, or --task PATH, --queue NAME or both of these.",
                returncode=WRONG_USAGE,
            )
        try:
            using = DatabaseChoice(chosen_backend(options)).to_change()
            jobs = Job.objects.using(using)
            if ids:
                self._cancel_each(jobs.all(), list(dict.fromkeys(ids)), dry=options["dry_run"])
                return
            if task:
                jobs = jobs.filter(task_path=task)
            if queue:
                jobs = jobs.filter(queue_name=queue)
            self._cancel_all(jobs.all(), task, dry=options["dry_run"], ask=not options["yes"])
        except Refusal as refusal:
            told = printable_lines(str(refusal))
            raise CommandError(told, returncode=refusal.exit_code) from refusal
        except (ConfigurationError, DialectError, MigrationsMissing) as error:
            raise CommandError(printable_lines(str(error))) from error
        except (DatabaseError, InterfaceError) as error:
            raise CommandError(
                f"The database reports an error: {printable_lines(str(error).strip())}"
            ) from error

    def _cancel_each(self, jobs: JobQuerySet[Job], ids: list[int], *, dry: bool) -> None:
        left = []
        for job_id in ids:
            job = jobs.filter(pk=job_id, finished_at=None).only("pk").first()
            if job is not None and (dry or job.cancel()):
                self._say(f"Job {job_id}: {'would be cancelled' if dry else 'cancelled'}.")
            else:
                left.append(str(job_id))
        if left:
            raise CommandError(
                f"Left alone: {', '.join(left)}. There is no such job, or it has ended."
            )

    def _cancel_all(
        self, jobs: JobQuerySet[Job], task: str | None, *, dry: bool, ask: bool
    ) -> None:
        waiting, running = count(jobs, WAITING), count(jobs, STATES[len(WAITING) :])
        if task and not (waiting or running):
            require_known(task)
        self._say(f"{in_words(waiting)} waiting, {in_words(running)} running.")
        if dry:
            self._say("Nothing is cancelled: this is a dry run.")
            return
        if not (waiting or running):
            return
        if ask:
            self._ask()
        self._say(f"Cancelled {in_words(jobs.cancel())}.")

    def _ask(self) -> None:
        try:
            answer = input("Cancel them? [y/N] ")
        except EOFError:
            raise CommandError("Nobody can be asked: say --yes, or --dry-run.") from None
        if answer.strip().lower() not in ("y", "yes"):
            raise CommandError("Nothing was cancelled.")

    def _say(self, line: str) -> None:
        self.stdout.write(printable_lines(line))


def count(jobs: JobQuerySet[Job], states: Any) -> int:
    """Return how many of the jobs are in these states."""
    relations = [state._meta.model_name for state in states]
    return sum(jobs.filter(**{f"{name}__isnull": False}).count() for name in relations)


def require_known(task: str) -> None:
    """Raise ``CommandError`` if there is no such task in the project: the path may be misspelt."""
    import_tasks(Configuration.load())
    known = [each.module_path for each in registered_tasks()]
    if task not in known:
        raise CommandError(f"No job waits or runs, and there is no task {task!r}; "
                           f"{suggest(task, known)}")  # fmt: skip


def in_words(number: int) -> str:
    return "1 job" if number == 1 else f"{number} jobs"
