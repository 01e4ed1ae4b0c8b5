"""``health``: whether the queue does its work, for probes and monitoring."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connections

from ..errors import SteadyQueueError
from ..listings.processes import ListedProcess, listed_processes
from ..listings.queues import ListedQueue, listed_queues
from ..listings.wording import duration
from ..models import FailedExecution
from ..models.readiness import pending_migrations
from ..printable import printable
from .context import Context
from .databases import described
from .exit_codes import DONE, FAILED, Refusal
from .formats import counted, duration_option, seconds
from .subcommand import Subcommand


class Health(Subcommand):
    """Whether supervisors live, workers are ready, and no queue waits too long."""

    name = "health"
    help = "exit with 0 if the queue does its work, for probes and monitoring"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--live", action="store_true", help="a supervisor lives")
        parser.add_argument(
            "--ready",
            action="store_true",
            help="the database is migrated, and live workers serve the queues; the default",
        )
        parser.add_argument(
            "--max-wait",
            type=duration_option,
            metavar="TIME",
            help="no job of a queue that is not paused is ready for longer than this",
        )
        parser.add_argument(
            "--max-failed", type=int, metavar="N", help="no more jobs than this have failed"
        )
        parser.add_argument(
            "--queue", action="append", metavar="NAME", help="only this queue; may be repeated"
        )

    def run(self, context: Context) -> int:
        examined: list[dict[str, Any]] = []
        problems: list[str] = []
        try:
            for using in context.databases.to_read():
                examination = Examination(using, context.options)
                problems += examination.problems()
                examined.append(examination.as_json())
        except Refusal:
            raise
        except (SteadyQueueError, ImproperlyConfigured, DatabaseError, InterfaceError) as error:
            problems.append(str(error).strip())
        data = {"ok": not problems, "databases": examined}
        context.show(data, [] if problems else ["Healthy."], problems)
        return FAILED if problems else DONE


class Examination:
    """What is found in one database."""

    def __init__(self, using: str, options: Mapping[str, Any]) -> None:
        self.using, self.options = using, options
        self.processes: list[ListedProcess] = []
        self.queues: list[ListedQueue] = []
        self.pending = pending_migrations(connections[using])
        if not self.pending:
            self.processes = listed_processes(using)
            self.queues = self._queues()

    def _queues(self) -> list[ListedQueue]:
        names = self.options["queue"]
        found = listed_queues(self.using, self.processes, extra=names or ())
        return found if names is None else [each for each in found if each.name in names]

    def problems(self) -> Iterator[str]:
        """Yield what is wrong."""
        where = f"database {self.using}: "
        if self.pending:
            yield f"{where}migrations are pending: {', '.join(self.pending)}"
            return
        if self.options["live"] and not self._lives("supervisor"):
            yield f"{where}no supervisor lives"
        if self.options["ready"] or not self.options["live"]:
            yield from self._unserved(where)
        if (longest := self.options["max_wait"]) is not None:
            yield from self._late(longest)
        if (most := self.options["max_failed"]) is not None:
            yield from self._failed(where, most)

    def _unserved(self, where: str) -> Iterator[str]:
        if not self._lives("worker"):
            yield f"{where}no worker lives"
            return
        wanted = self.options["queue"] or [each.name for each in self.queues if each.is_unserved]
        for queue in self.queues:
            if queue.name in wanted and not queue.workers:
                yield f"no live worker serves the queue {printable(queue.name)}"

    def _late(self, longest: timedelta) -> Iterator[str]:
        for queue in self.queues:
            wait = queue.oldest_wait
            if wait is not None and wait > longest and not queue.is_paused:
                name, most = printable(queue.name), duration(longest)
                yield f"the queue {name} waits {duration(wait)}, over {most}"

    def _failed(self, where: str, most: int) -> Iterator[str]:
        counts = [queue.counts["failed"] for queue in self.queues]
        number, exact = sum(each.number for each in counts), all(each.exact for each in counts)
        if not exact and number <= most and not self.options["queue"]:
            failed = FailedExecution.objects.using(self.using).order_by()
            number = failed[: most + 1].count()
            exact = number <= most
        if number > most or not exact:
            yield f"{where}{number:,}{'' if exact else '+'} jobs have failed, over {most:,}"

    def _lives(self, kind: str) -> bool:
        return any(each.is_live and each.row.kind == kind for each in self.processes)

    def as_json(self) -> dict[str, Any]:
        waits = [each.oldest_wait for each in self.queues if each.oldest_wait is not None]
        return {
            **described(self.using),
            "pending_migrations": self.pending,
            "oldest_wait_s": seconds(max(waits, default=None)),
            "live_processes": sum(each.is_live for each in self.processes),
            "queues": {
                each.name: {
                    "ready": counted(each.ready),
                    "oldest_wait_s": seconds(each.oldest_wait),
                    "failed": counted(each.counts["failed"]),
                    "paused": each.is_paused,
                    "workers": each.workers,
                }
                for each in self.queues
            },
        }
