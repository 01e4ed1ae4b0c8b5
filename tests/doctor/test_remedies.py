"""What a remedy has somebody run mends what was found."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from steady_queue_core.dialects import Ending, Outcome
from steady_queue_core.doctor import Finding, examine, examine_job
from steady_queue_core.errors import UnregisteredTaskError
from steady_queue_core.models import ClaimedExecution, FailedExecution, Queue, RecurringTask

from ..command_line.invoking import invoke, on_two_databases
from ..databases.fresh import fresh_alias
from ..databases.test_take_over import make
from ..models.recurrence import tasks
from . import causes_of_jobs, causes_of_queues, causes_of_waits
from .pasting import commands
from .test_culprits import ended, grow_old, start_on
from .ward import CAUSES, MINUTE, Cause, Ward, diagnosis

#: These modules fill the table.
assert CAUSES, (causes_of_jobs, causes_of_queues, causes_of_waits)

STARTS = "its command starts processes"
LOOKS = "its command shows something else to look at"
#: Findings whose commands mend nothing by themselves, and why.
LEFT_OUT = {
    "process-none": STARTS,
    "queue-unserved": STARTS,
    "dispatcher-missing": STARTS,
    "scheduler-missing": STARTS,
    "supervisor-missing": STARTS,
    "claim-stale": STARTS,
    "claim-orphaned": STARTS,
    "retention-undone": STARTS,
    "limit-busy": LOOKS,
    "host-failing": LOOKS,
}
#: Subcommands that show something.
LOOKING = ("doctor", "errors")


def a_queue_behind_which_others_wait(ward: Ward) -> None:
    ward.claimed(3, queue_name="bulk")
    ward.ready(60, "bulk")
    for number in range(12):
        ward.ready(2, f"queue{number}")
    grow_old(ward)


def threads_that_are_stuck(ward: Ward) -> None:
    ward.claimed(2)
    ward.age(ward.rows(ClaimedExecution), created_at=20 * MINUTE)
    causes_of_queues.a_queue_that_is_too_long(ward)


def a_host_whose_jobs_fail(ward: Ward) -> None:
    start_on(ward, "web-2", "worker-2")
    ended(ward, 12, "worker-2", failed=True)
    ended(ward, 12, "worker-1", failed=False)


def a_job_whose_task_was_not_there_in_time(ward: Ward) -> int:
    [job_id] = ward.failed()
    error = f"{UnregisteredTaskError.__module__}.{UnregisteredTaskError.__qualname__}"
    ward.rows(FailedExecution).update(exception_class=error)
    return job_id


def a_paused_queue_with_a_long_name(ward: Ward) -> None:
    _pause(ward, "m" * 255)


def a_paused_queue_that_looks_like_an_option(ward: Ward) -> None:
    _pause(ward, "--all")


def a_paused_queue_with_a_name_for_the_shell(ward: Ward) -> None:
    _pause(ward, "it's $(reboot) & more")


def _pause(ward: Ward, name: str) -> None:
    ward.ready(1, name)
    Queue(name, ward.using).pause()


def a_schedule_that_looks_like_an_option(ward: Ward) -> None:
    causes_of_queues.a_schedule_whose_task_is_gone(ward)
    ward.rows(RecurringTask).update(key="-n")


OTHERS = [
    Cause(code, plant, "", "")
    for code, plant in (
        ("backlog", a_queue_behind_which_others_wait),
        ("threads-held", threads_that_are_stuck),
        ("host-failing", a_host_whose_jobs_fail),
        ("job-task-unknown", a_job_whose_task_was_not_there_in_time),
        ("queue-paused", a_paused_queue_with_a_long_name),
        ("queue-paused", a_paused_queue_that_looks_like_an_option),
        ("queue-paused", a_paused_queue_with_a_name_for_the_shell),
        ("schedule-task-missing", a_schedule_that_looks_like_an_option),
    )
]
ALL = [*CAUSES, *OTHERS]
assert LEFT_OUT.keys() <= {each.code for each in ALL}


@pytest.fixture
def ward(settings: Any) -> Ward:
    settings.TASKS = tasks("default")
    found = Ward("default")
    found.forget_positions()
    return found


def of_cause(ward: Ward, cause: Cause, job_id: int | None) -> list[Finding]:
    return [each for each in diagnosis(ward, job_id) if each.code == cause.code]


def starts(command: str) -> bool:
    return not command or command.startswith("-")


def run(remedy: str) -> list[str]:
    """Run the commands of a remedy, but those that start processes; return them."""
    found = [each for each in commands(remedy) if not starts(each)]
    for each in found:
        told = invoke(*shlex.split(each))
        assert told.code == 0, (each, told)
    return found


def obey(ward: Ward) -> None:
    """End the jobs that were asked to end, as their worker does."""
    asked = ward.rows(ClaimedExecution).filter(job__max_attempts__lt=0)
    outcomes = [
        Outcome(
            Ending.FAILED, row.pk, row.token, row.queue_name, row.rank, attempts=1,
            exception_class="builtins.ValueError", message="told",
        )
        for row in asked
    ]  # fmt: skip
    assert len(ward.dialect.settle(ward.connection, outcomes)) == len(outcomes)


@pytest.mark.parametrize(
    "cause", [each for each in ALL if each.code not in LEFT_OUT], ids=lambda cause: cause.title
)
@pytest.mark.django_db(transaction=True)
def test_a_finding_is_gone_once_its_commands_have_run(ward: Ward, cause: Cause) -> None:
    job_id = cause.plant(ward)
    found = of_cause(ward, cause, job_id)
    were_run = run(found[0].remedy)
    obey(ward)
    assert (of_cause(ward, cause, job_id) == []) is bool(were_run), (found, were_run)


@pytest.mark.parametrize(
    "cause", [each for each in ALL if each.code in LEFT_OUT], ids=lambda cause: cause.title
)
@pytest.mark.django_db(transaction=True)
def test_commands_that_mend_nothing_start_or_show_something(ward: Ward, cause: Cause) -> None:
    for each in of_cause(ward, cause, cause.plant(ward)):
        for command in commands(each.remedy):
            looks = command.partition(" ")[0] in LOOKING
            assert looks if LEFT_OUT[cause.code] == LOOKS else starts(command), each
            if looks:
                assert run(each.remedy), each


@on_two_databases
def test_a_job_that_is_elsewhere_is_found_there(other: str, settings: Any) -> None:
    settings.TASKS = tasks("default") | {"archive": tasks(other)["default"]}
    # Of these, one has an id that no job of the first database has.
    *_, job_id = Ward(other).ready(3, backend_name="archive")
    [found] = examine_job(job_id, "default")
    assert found.code == "job-elsewhere"
    [command] = commands(found.remedy)
    told = invoke(*shlex.split(command))
    assert (told.code, f"Job {job_id} has been ready" in told.out) == (0, True)


def test_migrations_of_another_package_are_taken_over(
    tmp_path: Path, settings: Any, django_db_blocker: Any
) -> None:
    with django_db_blocker.unblock(), fresh_alias("sqlite", tmp_path) as alias:
        settings.TASKS = tasks(alias)
        make(alias)
        [found] = examine(alias)
        assert found.code == "migrations-foreign"
        assert run(found.remedy)
        assert [each.code for each in examine(alias)] == ["migrations-missing"]
