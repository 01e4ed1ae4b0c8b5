"""Rows that a transaction of somebody else keeps locked while a job needs them."""

from __future__ import annotations

from typing import NamedTuple


class Lock(NamedTuple):
    """Rows of a table: those of a job, or else all of them; and when they are locked."""

    name: str
    task: str
    table: str
    column: str = ""
    #: Seconds until the job is due.
    delay: float | None = None
    #: Whether the job runs already when the rows are locked; else nobody has claimed it yet.
    is_running: bool = False
    #: Whether they are those of processes, and stay locked until heartbeats have become due.
    is_of_worker: bool = False

    def statement(self, job: int) -> str:
        where = f" WHERE {self.column} = {job}" if self.column else ""
        return f"SELECT 1 FROM steady_queue_{self.table}{where} FOR UPDATE"


LOCKS = [
    Lock("a ready job", "work", "jobs", "id"),
    Lock("its place in the queue", "work", "ready_executions", "job_id"),
    Lock("a job that is due", "work", "jobs", "id", 0.2),
    Lock("its place among those that are due", "work", "scheduled_executions", "job_id", 0.2),
    Lock("a running job", "work", "jobs", "id", is_running=True),
    Lock("its claim", "work", "claimed_executions", "job_id", is_running=True),
    Lock("its semaphore", "limited_work", "semaphores", is_running=True),
    Lock("its permit", "limited_work", "permits", is_running=True),
    Lock("its unique key", "unique_work", "unique_keys", is_running=True),
    Lock("its batch", "batched_work", "batches", is_running=True),
    Lock("its membership", "batched_work", "batch_members", is_running=True),
    Lock("its worker", "work", "processes", is_running=True, is_of_worker=True),
    Lock("its rate", "rated_work", "rates"),
    Lock("statistics", "work", "statistics", is_running=True),
    Lock("schedules", "work", "recurring_tasks", is_running=True),
]
