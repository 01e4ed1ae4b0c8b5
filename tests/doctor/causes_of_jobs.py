"""Why one job does not run, or has not succeeded."""

from __future__ import annotations

from typing import Any

from steady_queue_core import call, chain, task
from steady_queue_core.dialects import JobRate
from steady_queue_core.models import (
    BatchMember,
    ClaimedExecution,
    Dependency,
    FailedExecution,
    Job,
    Permit,
    Queue,
    ReadyExecution,
    ScheduledExecution,
    Semaphore,
)
from steady_queue_core.tasks.metadata import JobMetadata

from .causes_of_queues import _limited, _overdue
from .ward import DAY, HOUR, MINUTE, Ward, cause


@task
def follow(*values: Any) -> None:
    """Come after another job."""


@cause("job-unknown", "There is no job 987654", "rolled back")
def an_unknown_id(ward: Ward) -> int:
    return 987654


@cause("job-failed", "after 1 of 1 attempts, with builtins.ValueError: told", "steady_queue retry ")
def a_failed_job(ward: Ward) -> int:
    [job_id] = ward.failed()
    return job_id


@cause("job-failed", r"ValueError: a\x1b[31mb", "")
def a_failure_with_a_hostile_message(ward: Ward) -> int:
    [job_id] = ward.failed()
    ward.rows(FailedExecution).update(message="a\x1b[31mb\nsecond line")
    return job_id


@cause("job-cancelled", "was cancelled at", "steady_queue retry ")
def a_cancelled_job(ward: Ward) -> int:
    [job_id] = ward.ready()
    assert ward.all.get(pk=job_id).cancel()
    return job_id


@cause("job-expired", "has expired", "expires")
def an_expired_job(ward: Ward) -> int:
    [job_id] = ward.ready(metadata=JobMetadata(expires=MINUTE).text())
    ward.age(ward.rows(Job), enqueued_at=HOUR)
    return job_id


@cause("job-task-unknown", "names the task shop.tasks.gone, which this project", "task_modules")
def a_job_whose_task_is_gone(ward: Ward) -> int:
    [job_id] = ward.ready(task_path="shop.tasks.gone")
    return job_id


@cause("job-task-unknown", "workers have not found it since", "Restart the workers")
def a_job_whose_task_the_workers_do_not_know(ward: Ward) -> int:
    [job_id] = ward.ready(delay=HOUR)
    since = f"Left to workers that know it since {ward.present(ward.using).isoformat()}."
    error = "steady_queue_core.errors.UnregisteredTaskError"
    ward.rows(Job).update(errors=f'[["{error}", "{since}"]]')
    return job_id


@cause("queue-paused", '1 job waits in queue "mail", which is paused', "steady_queue resume ")
def a_job_of_a_paused_queue(ward: Ward) -> int:
    Queue("mail", ward.using).pause()
    return ward.ready(1, "mail")[0]


@cause("queue-unserved", "The live ones serve: default", "--queues mail")
def a_job_of_an_unserved_queue(ward: Ward) -> int:
    ward.stop("worker")
    ward.start("worker", queues=["default"])
    return ward.ready(1, "mail")[0]


@cause("process-none", "No process of the queue is alive", "manage.py steady_queue")
def a_job_without_any_process(ward: Ward) -> int:
    ward.stop("supervisor", "worker", "dispatcher", "scheduler")
    return ward.ready()[0]


@cause("job-ready", '4 jobs of queue "default" before it', "priority")
def a_job_behind_others(ward: Ward) -> int:
    [last] = ward.ready(rank=1)
    ward.ready(3)
    ward.ready(2, rank=2)
    ward.ready(1, rank=-1)
    return last


@cause("job-scheduled", "it is due in 59 min", "")
def a_job_for_later(ward: Ward) -> int:
    return ward.ready(delay=HOUR)[0]


@cause("dispatcher-missing", "is overdue, and no dispatcher is alive", "--only dispatch")
def an_overdue_job_without_a_dispatcher(ward: Ward) -> int:
    ward.stop("dispatcher")
    return _overdue(ward)[0]


@cause("dispatcher-missing", "is scheduled, and no dispatcher is alive", "--only dispatch")
def a_job_for_later_without_a_dispatcher(ward: Ward) -> int:
    ward.stop("dispatcher")
    return ward.ready(delay=HOUR)[0]


@cause("job-overdue", "although a dispatcher is alive", "log of the dispatcher")
def an_overdue_job(ward: Ward) -> int:
    return _overdue(ward)[0]


@cause(
    "job-retry",
    "waits for attempt 2 of 3, after builtins.ValueError; it is due in",
    "steady_queue run-now ",
)
def a_job_that_is_to_be_retried(ward: Ward) -> int:
    [job_id] = ward.ready(delay=HOUR, max_attempts=3)
    ward.rows(Job).update(attempts=1, errors='[["builtins.ValueError", "told"]]')
    return job_id


@cause("job-rate-limited", "the key 'api' has 5 starts in 1 min", "Raise the limit")
def a_job_with_a_slot(ward: Ward) -> int:
    rate = JobRate("api", 5, MINUTE)
    metadata = JobMetadata(rate=rate.stored, slot=(1, 0))
    return ward.ready(delay=HOUR, metadata=metadata.text())[0]


@cause("job-blocked", "which is held by job", "steady_queue run-now ")
def a_blocked_job(ward: Ward) -> int:
    _, second = _limited(ward, 2)
    ward.claim()
    return second


@cause("claim-stale", "holds the concurrency key 'account', and worker worker-1", "supervisor")
def a_job_blocked_by_one_of_a_silent_worker(ward: Ward) -> int:
    second = a_blocked_job(ward)
    ward.silence("worker")
    return second


@cause("queue-paused", 'in queue "default", which is paused', "steady_queue resume ")
def a_job_blocked_by_one_of_a_paused_queue(ward: Ward) -> int:
    _, second = _limited(ward, 2)
    Queue("default", ward.using).pause()
    return second


@cause("limit-miscounted", "fewer than 2 run", "run-now")
def a_job_blocked_although_a_permit_is_free(ward: Ward) -> int:
    *_, last = _limited(ward, 3, to=2)
    ward.rows(Semaphore).update(value=1)
    return last


@cause("limit-stuck", "'account', which no job holds", "concurrency_maintenance")
def a_job_blocked_by_nobody(ward: Ward) -> int:
    second = a_blocked_job(ward)
    ward.rows(Permit).all().delete()
    return second


@cause("job-waiting", "waits for the end of job", "ask the doctor for their ids")
def a_job_of_a_chain(ward: Ward) -> int:
    chain(call(follow), call(follow)).enqueue()
    member = ward.rows(BatchMember).order_by("-pk")[0]
    assert ward.rows(Dependency).filter(job_id=member.job_id).exists()
    return int(member.job_id)


@cause("job-running", "was claimed by worker worker-1 (pid 17 on web-1)", "steady_queue cancel ")
def a_running_job(ward: Ward) -> int:
    return ward.claimed()[0].job_id


@cause("claim-stale", "was heard 1 h ago: the job does not go on", "supervisor")
def a_job_of_a_silent_worker(ward: Ward) -> int:
    [claim] = ward.claimed()
    ward.silence("worker")
    return claim.job_id


@cause("claim-stale", "was heard 1 h ago", "and none is alive")
def a_job_of_a_silent_worker_without_a_supervisor(ward: Ward) -> int:
    ward.stop("supervisor")
    return a_job_of_a_silent_worker(ward)


@cause("claim-orphaned", "by a process that is not registered", "supervisor")
def a_job_of_nobody(ward: Ward) -> int:
    [claim] = ward.claimed()
    ward.rows(ClaimedExecution).update(process_id=10_000)
    return claim.job_id


@cause("job-finished", "in attempt 1", "")
def a_finished_job(ward: Ward) -> int:
    return ward.finished()[0]


@cause("job-stateless", "no row says in which state it is", "A supervisor looks")
def a_job_without_an_execution(ward: Ward) -> int:
    [job_id] = ward.ready()
    ward.rows(ReadyExecution).all().delete()
    ward.rows(ScheduledExecution).all().delete()
    return job_id


@cause("job-expired", "when it expired", "enqueue it again")
def a_job_that_failed_because_it_had_expired(ward: Ward) -> int:
    [job_id] = ward.failed()
    expired = "steady_queue_core.errors.TaskExpired"
    ward.rows(FailedExecution).update(exception_class=expired)
    ward.age(ward.rows(FailedExecution), created_at=DAY)
    return job_id
