"""Why a whole queue is late."""

from __future__ import annotations

from typing import Any

from steady_queue_core.conformance.base import limited_job
from steady_queue_core.models import (
    ClaimedExecution,
    FailedExecution,
    Job,
    Pause,
    Permit,
    Queue,
    ReadyExecution,
    RecurringTask,
    ScheduledExecution,
    Semaphore,
)

from .ward import DAY, HOUR, MINUTE, TASK, Ward, cause


@cause("queue-paused", '3 jobs wait in queue "mail", which is paused', "steady_queue resume mail")
def a_paused_queue(ward: Ward) -> None:
    ward.ready(3, "mail")
    Queue("mail", ward.using).pause()


@cause("queue-paused", "for 1 h", "")
def a_queue_paused_long_ago_of_workers_that_are_gone(ward: Ward) -> None:
    a_paused_queue(ward)
    ward.age(ward.rows(Pause), created_at=HOUR)
    ward.stop("worker")


@cause("queue-unserved", '2 jobs wait in queue "mail", and no live worker', '"mail"')
def a_queue_that_no_worker_names(ward: Ward) -> None:
    ward.stop("worker")
    ward.start("worker", queues=["default", "repor*"])
    ward.ready(2, "mail")


@cause("queue-unserved", '1 job waits in queue "mail"', "--queues mail")
def a_queue_that_the_workers_leave_out(ward: Ward) -> None:
    ward.stop("worker")
    ward.start("worker", queues=["!mail"])
    ward.ready(1, "mail")


@cause("queue-unserved", 'queue "$(reboot);"', "--queues '$(reboot);'")
def a_queue_with_a_hostile_name(ward: Ward) -> None:
    a_queue_that_no_worker_names(ward)
    ward.rows(ReadyExecution).update(queue_name="$(reboot);")


@cause("queue-unserved", "worker worker-1 (pid 17 on web-1) did; it was heard 1 h ago", "")
def a_queue_whose_worker_is_silent(ward: Ward) -> None:
    ward.ready(1)
    ward.silence("worker")


@cause("process-none", "of the jobs 2 wait", "manage.py steady_queue")
def no_process_at_all(ward: Ward) -> None:
    ward.stop("supervisor", "worker", "dispatcher", "scheduler")
    ward.ready(2)


@cause("process-none", "The last one", "manage.py steady_queue")
def a_host_that_is_gone(ward: Ward) -> None:
    ward.ready(2)
    for kind in ("supervisor", "worker", "dispatcher", "scheduler"):
        ward.silence(kind)


@cause("dispatcher-missing", "2 scheduled jobs are overdue, the first by", "--only dispatch")
def no_dispatcher(ward: Ward) -> None:
    ward.stop("dispatcher")
    _overdue(ward)


@cause("dispatcher-late", "although a dispatcher is alive", "log")
def a_dispatcher_that_does_nothing(ward: Ward) -> None:
    _overdue(ward)


def _overdue(ward: Ward) -> list[int]:
    ids = ward.ready(2, delay=HOUR)
    ward.age(ward.rows(ScheduledExecution), due_at=10 * MINUTE)
    return ids


@cause("scheduler-missing", "'nightly' was due", "--only schedule")
def no_scheduler(ward: Ward) -> None:
    ward.stop("scheduler")
    _recurring(ward)


@cause("scheduler-late", "although a scheduler is alive", "log")
def a_scheduler_that_does_nothing(ward: Ward) -> None:
    _recurring(ward)
    ward.age(ward.processes.filter(kind="scheduler"), created_at=HOUR)


@cause("schedule-task-missing", "'nightly' names the task shop.gone", "schedules disable nightly")
def a_schedule_whose_task_is_gone(ward: Ward) -> None:
    _recurring(ward, task_path="shop.gone", schedule="0 0 1 1 *")


@cause("schedule-not-read", "reads only those in the code", "dynamic_tasks_enabled")
def a_schedule_that_is_not_read(ward: Ward) -> None:
    _recurring(ward, static=False)


def _recurring(ward: Ward, **fields: Any) -> None:
    present = ward.present(ward.using)
    row = {
        "key": "nightly", "task_path": TASK, "schedule": "* * * * *", "timezone": "UTC",
        "arguments": "{}", "backend_name": "default", "queue_name": "default",
        "created_at": present, "updated_at": present,
    } | fields  # fmt: skip
    ward.rows(RecurringTask).create(**row)
    ward.age(ward.rows(RecurringTask), active_since=DAY, created_at=DAY, updated_at=DAY)


@cause("claim-stale", "has claimed 2 jobs, and was heard 1 h ago", "A live supervisor")
def claims_of_a_silent_worker(ward: Ward) -> None:
    ward.claimed(2)
    ward.silence("worker")


@cause("claim-orphaned", "2 jobs are claimed by a process that is not registered", "supervisor")
def claims_of_nobody(ward: Ward) -> None:
    ward.claimed(2)
    ward.rows(ClaimedExecution).update(process_id=10_000)


@cause("claim-long", "was claimed 2 h ago by worker worker-1", "steady_queue cancel ")
def a_job_that_hangs(ward: Ward) -> None:
    ward.claimed()
    ward.age(ward.rows(ClaimedExecution), created_at=2 * HOUR)


@cause("limit-stuck", "concurrency key 'account', which no job holds", "concurrency_maintenance")
def a_lost_permit(ward: Ward) -> None:
    _limited(ward, 2)
    ward.rows(Permit).all().delete()
    ward.claim()


@cause("limit-stuck", "concurrency key 'account'", "run-now")
def a_permit_of_a_job_that_is_gone(ward: Ward) -> None:
    _limited(ward, 2)
    ward.rows(ReadyExecution).all().delete()


@cause("limit-miscounted", "'account' blocks jobs, and fewer than 2 run", "run-now")
def a_permit_of_one_job_of_two_that_is_gone(ward: Ward) -> None:
    first, *_ = _limited(ward, 3, to=2)
    ward.rows(ReadyExecution).filter(pk=first).delete()


@cause("limit-miscounted", "'account' blocks jobs", "concurrency_maintenance")
def a_free_permit_that_nobody_was_given(ward: Ward) -> None:
    _limited(ward, 2)
    ward.rows(Semaphore).update(value=1)


@cause("limit-miscounted", "fewer than 2 run", "concurrency_maintenance")
def a_permit_that_was_deleted(ward: Ward) -> None:
    first, *_ = _limited(ward, 3, to=2)
    ward.rows(Permit).filter(pk=first).delete()


def _limited(ward: Ward, count: int, to: int = 1) -> list[int]:
    jobs = [limited_job("account", to, task_path=TASK) for _ in range(count)]
    return [new.job_id or 0 for new in ward.dialect.enqueue(ward.connection, jobs)]


@cause("queue-slow", '3 jobs wait in queue "default", the oldest for 20 min', "more jobs")
def a_queue_that_is_too_long(ward: Ward) -> None:
    ward.ready(3)
    ward.age(ward.rows(ReadyExecution), created_at=20 * MINUTE)


@cause("queue-slow", "1 live worker for it: all of 3 threads are busy", "")
def busy_workers(ward: Ward) -> None:
    ward.claimed(3)
    a_queue_that_is_too_long(ward)


@cause("failures-many", "12 jobs have failed within an hour, of 14", "retry")
def many_failures(ward: Ward) -> None:
    ward.failed(12)
    ward.finished(2)
    assert ward.rows(FailedExecution).count() == 12


@cause("process-stale", "worker two (pid 17 on web-1) has sent no heartbeat", "suspended")
def a_silent_process_without_jobs(ward: Ward) -> None:
    ward.start("worker", "two", queues=["*"])
    ward.age(ward.processes.filter(name="two"), last_heartbeat_at=HOUR)


@cause("supervisor-missing", "no supervisor is", "Start the queue")
def workers_without_a_supervisor(ward: Ward) -> None:
    ward.stop("supervisor")


@cause("versions-differ", "1 live process runs Steady Queue 0.0.9, and this is", "Restart")
def a_process_with_old_code(ward: Ward) -> None:
    ward.start("worker", "old", queues=["*"], version="0.0.9")


@cause("retention-undone", "was to be deleted after 1 d", "dispatcher")
def jobs_that_nobody_deletes(ward: Ward) -> None:
    ward.stop("dispatcher")
    ward.finished(2)
    ward.age(ward.rows(Job), finished_at=3 * DAY, last_attempted_at=3 * DAY)


@cause("shutdown-timeout-short", "took 30 min", "shutdown_timeout")
def a_task_that_takes_longer_than_a_stop(ward: Ward) -> None:
    ward.finished()
    ward.age(ward.rows(Job), last_attempted_at=30.5 * MINUTE)
