"""Why a process has ended that did not end by itself, and what became of its jobs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...dialects import ClaimedJob
from ...listings.processes import metadata_of
from ...logging import process_name
from ...models import process_end
from ...models.process import Process, signs_of_life
from ...models.process_end import MOST_JOBS, ProcessEnd
from ..worker.attempt import RunResult
from .managed_process import FROZEN, HELD, STOP, ManagedProcess

#: Killed by a signal of somebody else's, or by the system for want of memory.
SIGNAL, MEMORY = "signal", "memory"
#: Ended of its own accord: with an exit status, or by an exception of a thread.
EXIT, ERROR = "exit", "error"
#: Declared dead, since its heartbeat was missing; found dead, its supervisor being dead, too.
HEARTBEAT, FOUND = "heartbeat", "found"
#: The other codes are those of ``ManagedProcess.ended_for``.

#: Most characters of the name of a task or queue.
MOST_NAME = 255


class Reason(NamedTuple):
    """Why a process has ended, as far as anybody has seen."""

    code: str
    #: A sentence about the process.
    words: str
    exit_code: int | None = None
    #: Its last heartbeat as it is stored, if the row does not have it any more.
    last_heartbeat_at: Any = None

    @classmethod
    def of_child(cls, child: ManagedProcess, how: str, *, memory_is_short: bool) -> Reason | None:
        """Return why a child has ended; ``None``: as it was asked to. ``how``: what the system told
        of it."""
        code, status = child.ended_for, child.exit_code
        words = {
            FROZEN: "It showed no sign of life, was replaced, and {how}.",
            HELD: "Tasks whose time was over did not end and kept it from working: it {how}.",
            STOP: "It did not end in time when it was told to: it {how}.",
        }
        if code and status != 0:
            return cls(code, words[code].format(how=how), status)
        if status is None:
            failed = getattr(child, "error", None) is not None
            return cls(ERROR, f"Its thread {how}.") if failed else None
        if status >= 0:
            is_clean = status == 0 and child.journal.exited_cleanly
            return None if is_clean else cls(EXIT, f"It {how}.", status)
        if memory_is_short and how.endswith("SIGKILL"):
            words_of_memory = "It {how}, when the system was killing processes for want of memory."
            return cls(MEMORY, words_of_memory.format(how=how), status)
        return cls(SIGNAL, f"It {how}.", status)


@dataclass
class Estate:
    """The claims of a dead process, and how they were ended."""

    counts: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    #: Those whose attempt was lost, and others.
    _lost_jobs: list[dict[str, Any]] = field(default_factory=list)
    _others: list[dict[str, Any]] = field(default_factory=list)

    def add(self, claim: ClaimedJob, done: RunResult) -> None:
        """Note the end of a claim."""
        ending, is_lost = done.outcome.ending.value, done.lost_process is not None
        self.counts[ending] = self.counts.get(ending, 0) + 1
        self.lost += is_lost
        kind = self._lost_jobs if is_lost else self._others
        if len(kind) < MOST_JOBS:
            task, queue = str(claim.task_path)[:MOST_NAME], str(claim.queue_name)[:MOST_NAME]
            kind.append(
                {
                    "id": claim.job_id,
                    "task": task,
                    "queue": queue,
                    "ending": ending,
                    "lost": is_lost,
                }
            )

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """Some of them, those first whose attempt was lost."""
        return (self._lost_jobs + self._others)[:MOST_JOBS]

    def end_of(
        self, process: Process, known: dict[str, Any], reason: Reason, signs: tuple[Any, Any]
    ) -> ProcessEnd:
        """Return the row that tells of all this; ``known``: the metadata of the process; ``signs``:
        of its life."""
        details = {
            "why": reason.words,
            "exit_code": reason.exit_code,
            "recovered_by": process_name.get(),
            "queues": _names(known.get("queues")),
            "threads": known.get("threads") if isinstance(known.get("threads"), int) else None,
            "version": str(known.get("version", ""))[:MOST_NAME],
            "endings": self.counts,
            "jobs": self.jobs,
        }
        return ProcessEnd(
            process_id=process.pk,
            name=process.name,
            kind=process.kind,
            pid=process.pid,
            hostname=process.hostname,
            supervisor_id=process.supervisor_id,
            started_at=signs[0],
            last_heartbeat_at=signs[1] or reason.last_heartbeat_at,
            reason=reason.code,
            held=sum(self.counts.values()),
            lost=self.lost,
            details=json.dumps(details),
        )


def _names(found: object) -> list[str]:
    given: Iterable[object] = found if isinstance(found, list) else ()
    return [str(each)[:MOST_NAME] for each in given][:MOST_JOBS]


def bury(using: str, process: Process, estate: Estate, reason: Reason) -> bool:
    """Delete the row of a process, and store how it has ended."""
    known = metadata_of(process)
    signs = signs_of_life(using, process.pk)
    return process_end.bury(using, estate.end_of(process, known, reason, signs))
