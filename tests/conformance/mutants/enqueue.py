"""Jobs inserted wrongly."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import sleep

from django.db import connections
from django.utils import timezone

from steady_queue_core.dialects import NewJob

from .mutant import commit, fails, rows, shorten, sqlite

enqueue = sqlite.steady_queue_enqueue
YEAR_2038 = datetime(2038, 1, 19, tzinfo=UTC)


def enqueue_with(connection, jobs, **changes):
    """Enqueue ``jobs`` with fields changed by functions of the job."""
    return enqueue(
        connection,
        [replace(job, **{name: value(job) for name, value in changes.items()}) for job in jobs],
    )


@fails("enqueue_stores_a_job_as_it_was_given", "a_claim_tells_all_that_was_enqueued",
       hook="enqueue")  # fmt: skip
def forgets_the_attempts_allowed(connection, jobs):
    return enqueue_with(connection, jobs, max_attempts=lambda job: 1)


@fails("enqueue_stores_a_job_as_it_was_given", hook="enqueue")
def mixes_up_backends(connection, jobs):
    return enqueue_with(connection, jobs, backend_name=lambda job: "default")


@fails("the_first_execution_has_the_jobs_queue_and_rank",
       "the_smaller_rank_comes_first_over_all_queues", hook="enqueue")  # fmt: skip
def leaves_the_rank_off_the_execution(connection, jobs):
    new = enqueue(connection, jobs)
    rows(connection, "ReadyExecution").update(rank=0)
    return new


@fails("ids_come_in_the_order_given_and_grow", hook="enqueue")
def inserts_in_another_order(connection, jobs):
    return enqueue(connection, jobs[::-1])[::-1]


@fails("ids_come_in_the_order_given_and_grow", hook="enqueue")
def sorts_by_rank_and_queue(connection, jobs):
    return enqueue(connection, sorted(jobs, key=lambda job: (job.rank, job.queue_name)))


@fails("an_id_is_not_used_again", hook="enqueue")
def uses_the_ids_of_deleted_jobs_again(connection, jobs):
    with sqlite.steady_queue_transaction(connection), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sqlite_sequence SET seq = coalesce((SELECT max(id) FROM steady_queue_jobs), 0) "
            "WHERE name = 'steady_queue_jobs'"
        )
        return enqueue(connection, jobs)


@fails("enqueued_at_is_the_databases_time", hook="enqueue")
def tells_the_hosts_time(connection, jobs):
    present = datetime.now(UTC)
    return [new._replace(enqueued_at=present) for new in enqueue(connection, jobs)]


@fails("enqueued_at_is_the_databases_time", "every_instant_is_taken_from_that_clock",
       hook="enqueue")  # fmt: skip
def has_a_clock_of_its_own(connection, jobs):
    new = enqueue(connection, jobs)
    later = timedelta(hours=3)
    for job_id, enqueued_at in new:
        rows(connection, "Job").filter(pk=job_id).update(enqueued_at=enqueued_at + later)
    return [(job_id, enqueued_at + later) for job_id, enqueued_at in new]


@fails("the_projects_clock_is_not_asked", hook="enqueue")
def asks_the_projects_clock(connection, jobs):
    new = enqueue(connection, jobs)
    ids = [job_id for job_id, _ in new]
    rows(connection, "Job").filter(pk__in=ids).update(enqueued_at=timezone.now())
    return new


@fails("the_active_time_zone_changes_nothing", hook="enqueue")
def stores_local_time(connection, jobs):
    new = enqueue(connection, jobs)
    local = timezone.localtime().utcoffset()
    for job_id, enqueued_at in new:
        rows(connection, "Job").filter(pk=job_id).update(enqueued_at=enqueued_at + local)
    return new


@fails("a_job_that_is_due_is_ready", hook="enqueue")
def schedules_what_is_due_already(connection, jobs):
    far = datetime(2999, 1, 1, tzinfo=UTC)
    new = enqueue_with(connection, jobs, run_at=lambda job: job.run_at and far)
    for (job_id, _), job in zip(new, jobs, strict=True):
        rows(connection, "ScheduledExecution").filter(pk=job_id).update(due_at=job.run_at)
    return new


@fails("a_job_of_later_is_scheduled_for_that_instant", hook="enqueue")
def forgets_the_time_zone(connection, jobs):
    return enqueue_with(
        connection, jobs, run_at=lambda job: job.run_at and job.run_at.replace(tzinfo=UTC)
    )


@fails("a_job_of_later_is_scheduled_for_that_instant", hook="enqueue")
def stores_whole_seconds(connection, jobs):
    return enqueue_with(
        connection, jobs, run_at=lambda job: job.run_at and job.run_at.replace(microsecond=0)
    )


@fails("instants_far_away_are_kept", hook="enqueue")
def ends_in_2038(connection, jobs):
    return enqueue_with(
        connection, jobs, run_at=lambda job: job.run_at and min(job.run_at, YEAR_2038)
    )


@fails("a_delay_counts_from_the_databases_time", hook="enqueue")
def counts_delays_in_whole_seconds(connection, jobs):
    return enqueue_with(
        connection, jobs, delay=lambda job: job.delay and timedelta(seconds=job.delay.seconds)
    )


@fails("a_delay_counts_from_the_databases_time", hook="enqueue")
def counts_delays_from_a_clock_of_its_own(connection, jobs):
    def shifted(job: NewJob):
        return job.delay and job.delay + timedelta(seconds=7)

    return enqueue_with(connection, jobs, delay=shifted)


@fails("nothing_to_enqueue_inserts_nothing", hook="enqueue")
def needs_a_job(connection, jobs):
    jobs[0].queue_name.encode()
    return enqueue(connection, jobs)


@fails("all_jobs_are_inserted_or_none", hook="enqueue")
def inserts_one_by_one(connection, jobs):
    return [new for job in jobs for new in enqueue(connection, [job])]


@fails("all_jobs_are_inserted_or_none", hook="enqueue")
def leaves_out_what_cannot_be_stored(connection, jobs):
    return enqueue(connection, [job for job in jobs if job.arguments is not None])


@fails("enqueue_joins_the_callers_transaction", hook="enqueue")
def commits_at_once(connection, jobs):
    new = enqueue(connection, jobs)
    commit(connection)
    return new


@fails("many_threads_enqueue_at_once", hook="enqueue")
def reads_the_last_id_before_it_has_the_lock(connection, jobs):
    last = rows(connection, "Job").order_by("-pk").values_list("pk", flat=True).first() or 0
    sleep(0.005)
    with connections[connection.alias].cursor() as cursor:
        cursor.execute(
            "UPDATE sqlite_sequence SET seq = %s WHERE name = 'steady_queue_jobs'", [last]
        )
    return enqueue(connection, jobs)


@fails("an_instant_equals_itself_whoever_has_stored_it", hook="enqueue")
def stores_instants_in_milliseconds_of_text(connection, jobs):
    new = enqueue(connection, jobs)
    shorten(connection, "steady_queue_scheduled_executions", "due_at")
    return new


@fails("the_instant_that_was_asked_for_is_kept_though_it_is_past", hook="enqueue")
def forgets_an_instant_that_is_past(connection, jobs):
    present = datetime.now(UTC)
    return enqueue_with(
        connection, jobs, run_at=lambda job: job.run_at if later(job, present) else None
    )


def later(job, present):
    return job.run_at and job.run_at > present
