"""Each row of the tables in docs/perfectqueue.md does what the page says: a test runs it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, TypeVar

import pytest
from django.core.management import call_command

from steady_queue_core import (
    Discard,
    DuplicateTask,
    Fail,
    Preempted,
    Retry,
    Snooze,
    Unique,
    limits_concurrency,
    shares,
    task,
)
from steady_queue_core.compat import TaskResultDoesNotExist
from steady_queue_core.dialects import FairKey
from steady_queue_core.middleware import Middleware
from steady_queue_core.models import (
    BlockedExecution,
    ClaimedExecution,
    Job,
    ReadyExecution,
    Retention,
    ScheduledExecution,
    UniqueKey,
)
from steady_queue_core.retries import constant
from steady_queue_core.tasks.registry import known_task

from .. import documents
from ..core.driver import Driver
from ..models.recurrence import tasks
from .conftest import MakeProject
from .harness import Project
from .scenarios import queue, registered, stop_all
from .waiting import wait_for

T = TypeVar("T", bound=Callable[..., None])

HERE = __name__
HOUR = timedelta(hours=1)
#: The tests, by the first cells of the rows that they run.
TESTS: dict[str, str] = {}

in_a_database = pytest.mark.django_db(transaction=True)


def row(first_cell: str) -> Callable[[T], T]:
    """Say which row of the page a test runs."""

    def decorate(test: T) -> T:
        assert first_cell not in TESTS, f"{TESTS[first_cell]} runs {first_cell} already"
        TESTS[first_cell] = test.__name__
        return test

    return decorate


def rows_of_the_page() -> list[str]:
    """Return the first cells of all tables, without their heads."""
    lines = documents.prose(documents.page("perfectqueue.md")).splitlines()
    firsts = [line.strip("|").split(" | ")[0].strip() for line in lines if line.startswith("|")]
    return [each for each in firsts if each != "PerfectQueue" and not each.startswith("---")]


def test_each_row_of_the_page_has_a_test() -> None:
    rows = rows_of_the_page()
    assert len(rows) > 30
    assert sorted(TESTS) == sorted(rows)


# --- the tasks ------------------------------------------------------------------------------------


@limits_concurrency(key=lambda data, user="": user, to=2)
@task(
    unique=Unique(on_conflict="raise", keep=timedelta(minutes=5)),
    fair_key=lambda data, user="": user,
    takes_context=True,
)
def user_task(context: Any, data: dict[str, Any], user: str = "") -> list[Any]:
    return [data, context.attempt]


#: What the task does next.
script: list[Callable[[Any], Any]] = []


@task(takes_context=True, max_attempts=3, backoff=constant(600))
def scripted(context: Any) -> Any:
    return script.pop(0)(context)


class Around(Middleware):
    """What stands around a task."""

    seen: list[str] = []

    def execute(self, context: Any, proceed: Any) -> Any:
        if context.task_result.args[0].get("skip"):
            raise Discard("not today")
        self.seen.append("before")
        value = proceed()
        self.seen.append("after")
        return value

    async def aexecute(self, context: Any, proceed: Any) -> Any:
        return await proceed()


@pytest.fixture(autouse=True)
def _project(settings: Any) -> None:
    settings.TASKS = tasks("default", fair_queues="*")
    script.clear()
    Around.seen.clear()


@pytest.fixture
def driver() -> Driver:
    return Driver()


def raising(error: Exception) -> Callable[[Any], None]:
    def step(context: Any) -> None:
        raise error

    return step


# --- submitting -----------------------------------------------------------------------------------


@row('`queue.submit("k1", "user_task", data)`')
@in_a_database
def test_submitting_with_a_key(driver: Driver) -> None:
    result = user_task.using(unique_key="k1").enqueue({"uid": 1})
    assert UniqueKey.objects.get().job_id == int(result.id)
    assert driver.finish(result).return_value == [{"uid": 1}, 1]


@row("`IdempotentAlreadyExistsError`")
@in_a_database
def test_a_key_that_is_taken_is_an_error(driver: Driver) -> None:
    first = user_task.using(unique_key="k1").enqueue({"uid": 1})
    with pytest.raises(DuplicateTask) as caught:
        user_task.using(unique_key="k1").enqueue({"uid": 2})
    assert caught.value.result is not None
    assert caught.value.result.id == first.id
    assert Job.objects.count() == 1


@row("`retention_time:`")
@in_a_database
def test_keys_and_jobs_are_kept_for_a_while(driver: Driver) -> None:
    result = user_task.using(unique_key="k1", retention=HOUR).enqueue({})
    driver.finish(result)
    with pytest.raises(DuplicateTask):
        user_task.using(unique_key="k1").enqueue({})
    kept = Retention.objects.get(job_id=result.id).expires_at - Job.objects.get().finished_at
    assert HOUR <= kept < 2 * HOUR
    UniqueKey.objects.update(expires_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert user_task.using(unique_key="k1").enqueue({}).id != result.id


@row("`run_at:`")
@in_a_database
def test_a_job_for_later() -> None:
    at = datetime(2099, 1, 1, tzinfo=UTC)
    user_task.using(unique_key="k1", run_after=at).enqueue({})
    user_task.using(unique_key="k2", run_after=HOUR).enqueue({})
    due = list(ScheduledExecution.objects.order_by("job_id").values_list("due_at", flat=True))
    assert due[0] == at
    enqueued = Job.objects.order_by("pk").values_list("enqueued_at", flat=True)[1]
    assert due[1] - enqueued == HOUR
    assert not ReadyExecution.objects.exists()


@row("`user:`")
@in_a_database
def test_the_user_is_the_fair_key() -> None:
    user_task.using(unique_key="k1").enqueue({}, user="user_1")
    user_task.using(unique_key="k2", fair_key="user_2").enqueue({}, user="user_1")
    metadata = Job.objects.order_by("pk").values_list("metadata", flat=True)
    assert [FairKey.read(each) for each in metadata] == ["user_1", "user_2"]


@row("`user:` with `max_running: 2`")
@in_a_database
def test_a_user_may_run_two_jobs_and_has_the_weight_two() -> None:
    shares.set_weight("default", "user_1", 2)
    assert shares.weight_of("default", "user_1") == 2
    for number in range(3):
        user_task.using(unique_key=number).enqueue({}, user="user_1")
    user_task.using(unique_key="k4").enqueue({}, user="user_2")
    assert ReadyExecution.objects.count() == 3
    assert BlockedExecution.objects.count() == 1


@row('`compression: "gzip"`')
@in_a_database
def test_arguments_are_compressed(driver: Driver, settings: Any) -> None:
    settings.TASKS = tasks("default", payload={"compress_over": 100})
    data = {"text": "x" * 10_000}
    result = user_task.enqueue(data)
    assert len(Job.objects.get().arguments) < 1_000
    assert driver.finish(result).return_value == [data, 1]


@row('`route "user_task" => Handler`')
@in_a_database
def test_the_function_is_found_by_its_path() -> None:
    user_task.enqueue({})
    path = Job.objects.get().task_path
    assert path == f"{HERE}.user_task"
    found = known_task(path)
    assert found is not None
    assert found.func is user_task.func
    assert known_task(f"{HERE}.user_.*") is None


# --- references -----------------------------------------------------------------------------------


@row("`queue[key]`")
@in_a_database
def test_a_reference_goes_by_the_id_of_the_result() -> None:
    result = user_task.using(unique_key="k1").enqueue({"uid": 1})
    assert user_task.get_result(result.id).args == [{"uid": 1}]


@row("`task.exists?`")
@in_a_database
def test_a_job_that_is_gone_does_not_exist() -> None:
    result = user_task.enqueue({})
    assert user_task.get_result(result.id).id == result.id
    Job.objects.get().discard()
    with pytest.raises(TaskResultDoesNotExist):
        user_task.get_result(result.id)


@row("`NotFoundError`")
@in_a_database
def test_a_result_of_a_job_that_is_gone_cannot_be_refreshed() -> None:
    result = user_task.enqueue({})
    Job.objects.get().discard()
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()
    with pytest.raises(TaskResultDoesNotExist):
        user_task.get_result("no id")


@row("`task.metadata`: `type`, `status`, `created_at`")
@in_a_database
def test_a_reference_tells_type_status_and_time() -> None:
    found = user_task.get_result(user_task.enqueue({}).id)
    assert found.task.module_path == user_task.module_path
    assert found.status.name == "READY"
    assert found.enqueued_at == Job.objects.get().enqueued_at


@row("`queue.each`, `perfectqueue list`")
@in_a_database
def test_jobs_are_listed_by_their_states(driver: Driver) -> None:
    script[:] = [raising(Fail("no such row"))]
    failed = driver.finish(scripted.enqueue())
    ready, later = scripted.enqueue(), scripted.using(run_after=HOUR).enqueue()
    [running] = driver.claim()
    waiting = scripted.enqueue()
    of_state = {
        relation: [str(job.pk) for job in Job.objects.filter(**{f"{relation}__isnull": False})]
        for relation in (
            "readyexecution", "scheduledexecution", "claimedexecution", "failedexecution",
        )
    }  # fmt: skip
    assert of_state == {
        "readyexecution": [waiting.id],
        "scheduledexecution": [later.id],
        "claimedexecution": [ready.id],
        "failedexecution": [failed.id],
    }
    assert str(running.job_id) == ready.id


@row("`task.force_finish!`, `perfectqueue force_finish k2`")
@in_a_database
def test_a_waiting_job_is_ended_and_a_running_one_told_to_end(driver: Driver) -> None:
    first, second = scripted.enqueue(), scripted.enqueue()
    assert first.cancel()
    call_command("steady_queue_cancel", second.id, verbosity=0)
    for result in (first, second):
        result.refresh()
        assert result.status.name == "FAILED"
    assert driver.claim() == []
    running = scripted.enqueue()
    driver.claim()
    assert running.cancel()
    assert Job.objects.get(pk=running.id).max_attempts < 0


@row("`task.preempt`")
@in_a_database
def test_nobody_takes_over_what_a_worker_runs(driver: Driver) -> None:
    scripted.enqueue()
    assert len(driver.claim()) == 1
    assert Driver().claim() == []
    assert ClaimedExecution.objects.get().process_id == driver.process.id


# --- in a task ------------------------------------------------------------------------------------


@row("`task.data`")
@in_a_database
def test_the_data_are_the_arguments(driver: Driver) -> None:
    assert driver.finish(user_task.enqueue({"uid": 7})).return_value[0] == {"uid": 7}


@row("`task.finish!`")
@in_a_database
def test_a_task_ends_by_returning(driver: Driver) -> None:
    script[:] = [lambda context: {"rows": 5}]
    result = driver.finish(scripted.enqueue())
    assert (result.status.name, result.return_value) == ("SUCCESSFUL", {"rows": 5})


@row("`task.retry!(retry_wait: 300)`")
@in_a_database
def test_a_task_asks_for_another_attempt(driver: Driver) -> None:
    for error, seconds in ((Retry(300), 300), (LookupError("no such row"), 600)):
        script[:] = [raising(error)]
        result = scripted.enqueue()
        driver.work()
        job = Job.objects.get(pk=result.id)
        assert job.attempts == 1
        due = job.scheduledexecution.due_at - job.last_attempted_at
        # The worker knows the database's clock but for a fraction of a millisecond.
        assert timedelta(seconds=seconds - 0.1) <= due < timedelta(seconds=seconds + 60)
    script[:] = [raising(Retry(0))] * 3
    result = driver.finish(scripted.enqueue())
    assert (result.status.name, result.attempts) == ("FAILED", 3)


@row("`task.release!`")
@in_a_database
def test_a_task_is_released_without_using_up_an_attempt(driver: Driver) -> None:
    script[:] = [raising(Snooze(0.001)), raising(Snooze(0.001)), lambda context: context.attempt]
    result = scripted.enqueue()

    def has_finished() -> bool:
        driver.dispatch()
        return bool(driver.finish(result).status.name == "SUCCESSFUL")

    wait_for(has_finished, 20, "the end of the job")
    assert result.return_value == 1
    assert result.attempts == 1
    script[:] = [raising(Snooze(0.001))]
    result = driver.finish(scripted.using(max_snoozes=0).enqueue())
    assert result.status.name == "FAILED"
    with pytest.raises(ValueError, match="delay must be more than 0"):
        Snooze(0)


@row("`task.update_data!(row: 5)`")
@in_a_database
def test_what_a_task_stores_is_there_in_the_next_attempt(driver: Driver) -> None:
    def store(context: Any) -> None:
        context.checkpoint({"old": 1})
        context.checkpoint({"row": 5})
        raise Retry(0)

    script[:] = [store, lambda context: context.checkpointed]
    assert driver.finish(scripted.enqueue()).return_value == {"row": 5}


@row("`PreemptedError` from `heartbeat!`")
@in_a_database
def test_a_task_learns_that_its_job_is_no_longer_its_own(driver: Driver) -> None:
    learned: list[bool] = []

    def lose(context: Any) -> None:
        learned.append(context.is_held())
        ClaimedExecution.objects.all().delete()
        learned.append(context.is_held())
        with pytest.raises(Preempted):
            context.checkpoint(1)

    script[:] = [lose]
    scripted.enqueue()
    [claim] = driver.claim()
    driver.run(claim)
    assert learned == [True, False]


@row("`before_perform`, `after_perform`")
@in_a_database
def test_middleware_is_around_tasks_and_may_skip_one(driver: Driver, settings: Any) -> None:
    settings.TASKS = tasks("default", middleware=[f"{HERE}.Around"])
    assert driver.finish(user_task.enqueue({})).status.name == "SUCCESSFUL"
    assert Around.seen == ["before", "after"]
    skipped = driver.finish(user_task.enqueue({"skip": True}))
    assert skipped.metadata["discarded"] == "not today"
    assert Around.seen == ["before", "after"]


@row("`task.heartbeat!`")
@pytest.mark.thorough
def test_a_worker_renews_the_lease_of_a_long_task(make_project: MakeProject) -> None:
    lease = {"process_heartbeat_interval": 0.2, "process_alive_threshold": 1.0}
    project = make_project(queue(processes=1, **lease))
    project.start().wait_ready(1)
    project.start().wait_ready(1)
    [job] = project.enqueue("work_again", [3.0])
    project.wait_done()
    stop_all(project)
    assert len(project.attempts_at(job)) == 1
    assert project.state_of(job) == "finished"


@row("a dead worker's task, after `alive_time`")
@pytest.mark.thorough
def test_the_task_of_a_dead_worker_runs_again(make_project: MakeProject) -> None:
    """At once if its supervisor lives, else when the lease is over."""
    options = queue(processes=1, threads=1, process_heartbeat_interval=0.3)
    project = make_project({**options, "process_alive_threshold": 1.5})
    supervisor = project.start()
    [job] = project.enqueue("work_again", [30.0])
    worker = project.wait_started(job).pid
    supervisor.send(signal.SIGKILL, worker)
    project.wait_started(job, times=2)
    supervisor.send_tree(signal.SIGKILL)
    supervisor.wait_exit()
    assert registered(project, supervisor.pid)
    other = project.start()
    project.wait_started(job, times=3)
    assert not registered(project, supervisor.pid)
    other.stop(signal.SIGQUIT)


@row("at-least-once, without end")
@pytest.mark.thorough
def test_a_job_runs_until_it_has_taken_so_many_processes_along(make_project: MakeProject) -> None:
    modules = ["tests.faultapp.delivery"]
    project = make_project(queue(processes=1, threads=1, task_modules=modules))
    project.start().wait_ready(1)
    [job] = project.enqueue("delivery:poison")
    project.wait_done()
    stop_all(project)
    assert len(project.attempts_at(job)) == 3
    assert project.state_of(job) == "failed"


# --- the worker -----------------------------------------------------------------------------------


@row("`perfectqueue run Dispatch`")
@pytest.mark.thorough
def test_one_command_runs_the_queue(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1))
    project.start()
    [job] = project.enqueue("work", [0.0])
    project.wait_done()
    stop_all(project)
    assert project.state_of(job) == "finished"


@row("`perfectqueue init`")
def test_migrate_makes_the_tables(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1), template=None)
    migrated = project.manage("migrate", "--verbosity", "0")
    assert migrated.returncode == 0, migrated.stderr
    assert project.count("jobs") == 0


@row("`processors`, `processor_type`")
@pytest.mark.thorough
def test_workers_are_processes_with_threads_or_with_task_processes(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=2, threads=3))
    supervisor = project.start()
    assert len(supervisor.wait_ready(2)) == 2
    stop_all(project)

    options = queue(processes=1, threads=2)
    options["workers"][0]["executor"] = "processes"
    project = make_project(options)
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    [job] = project.enqueue("work", [0.0])
    project.wait_done()
    assert project.attempts_at(job)[0].pid != worker
    stop_all(project)


POLLS = """
    import time

    from steady_queue_core.signals import process_polled

    def polled(process_kind, **kwargs):
        if process_kind == "worker":
            with open(BASE_DIR / "polls", "a") as file:
                print(time.monotonic(), file=file)

    process_polled.connect(polled)
"""


@row("`poll_interval`")
@pytest.mark.thorough
def test_a_worker_polls_as_often_as_it_is_told_to(make_project: MakeProject) -> None:
    options = queue(processes=1)
    options["workers"][0]["polling_interval"] = 0.02
    project = make_project(options, extra=POLLS)
    project.start().wait_ready(1)

    def polls() -> list[float]:
        file = project.folder / "polls"
        return [float(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []

    wait_for(lambda: len(polls()) > 20, 20, "the worker's looks")
    last = polls()[-8:]
    # It looks after five intervals if the database wakes it; of 100 ms, as they are by default,
    # that would be half a second.
    assert min(b - a for a, b in pairwise(last)) < 0.4
    stop_all(project)


@row("`max_request_per_child`")
@pytest.mark.thorough
def test_a_worker_is_replaced_after_so_many_jobs(make_project: MakeProject) -> None:
    options = queue(processes=1, threads=1)
    options["workers"][0]["recycle_after"] = 2
    project = make_project(options)
    supervisor = project.start()
    [first] = supervisor.wait_ready(1)
    project.enqueue("work", *[[0.0]] * 2)
    project.wait_done()
    wait_for(lambda: first not in supervisor.children(), 20, "the end of the first worker")
    supervisor.wait_ready(1)
    stop_all(project)


@row("`child_graceful_kill_limit`")
@pytest.mark.thorough
def test_tasks_get_so_long_to_end_in_a_stop(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=0.5))
    supervisor = project.start()
    [job] = project.enqueue("work", [60.0])
    project.wait_started(job)
    assert supervisor.stop(signal.SIGTERM) == 0
    assert project.state_of(job) == "ready"


@row("TERM")
@pytest.mark.thorough
def test_term_lets_tasks_end(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=20))
    supervisor = project.start()
    running, waiting = project.enqueue("work", [0.7], [30.0])
    project.wait_started(running)
    assert supervisor.stop(signal.SIGTERM) == 0
    assert [project.state_of(job) for job in (running, waiting)] == ["finished", "ready"]


@row("QUIT")
@pytest.mark.thorough
def test_quit_ends_at_once(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=60))
    supervisor = project.start()
    [job] = project.enqueue("work", [60.0])
    project.wait_started(job)
    assert supervisor.stop(signal.SIGQUIT) == 0
    assert project.state_of(job) == "ready"


@row("TERM to a child")
@pytest.mark.thorough
def test_term_to_a_worker_replaces_it_once_its_tasks_have_ended(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=20))
    supervisor = project.start()
    [first] = supervisor.wait_ready(1)
    [job] = project.enqueue("work", [0.7])
    project.wait_started(job)
    supervisor.send(signal.SIGTERM, first)
    wait_for(lambda: {*supervisor.workers()} - {first}, 20, "another worker")
    project.wait_done()
    assert project.state_of(job) == "finished"
    assert len(project.attempts_at(job)) == 1
    stop_all(project)


def restart(project: Project) -> None:
    supervisor = project.supervisors[0]
    supervisor.send(signal.SIGHUP)
    wait_for(lambda: "All processes are in place" in supervisor.errors(), 30, "the succession")


@row("USR1, or INT and `detach_wait`")
@pytest.mark.thorough
@pytest.mark.fresh
def test_hup_lets_tasks_end_beside_new_workers(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=0.1))
    project.start()
    [job] = project.enqueue("work", [4.0])
    first = project.wait_started(job).pid
    restart(project)
    [other] = project.enqueue("work")
    assert project.wait_started(other).pid != first
    project.wait_done()
    assert len(project.attempts_at(job)) == 1
    stop_all(project)


@pytest.mark.thorough
@row("HUP: immediate restart")
@pytest.mark.thorough
@pytest.mark.fresh
def test_hup_with_no_time_to_drain_starts_tasks_anew(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1, drain_timeout=0))
    project.start()
    [job] = project.enqueue("work", [60.0])
    first = project.wait_started(job).pid
    restart(project)
    assert project.wait_started(job, times=2).pid != first
    project.supervisors[0].send(signal.SIGQUIT)
    assert project.supervisors[0].wait_exit() == 0


@row("USR2: reopen log files")
@pytest.mark.thorough
def test_usr1_opens_log_files_anew(make_project: MakeProject) -> None:
    extra = """
    LOGGING["handlers"]["file"] = {
        "class": "logging.FileHandler", "filename": BASE_DIR / "queue.log",
    }
    LOGGING["loggers"]["steady_queue"]["handlers"].append("file")
    """
    project = make_project(queue(processes=1), extra=extra)
    supervisor = project.start()
    supervisor.wait_ready(1)
    log = project.folder / "queue.log"
    log.rename(project.folder / "queue.log.1")
    supervisor.send(signal.SIGUSR1)
    wait_for(lambda: log.exists() and "Supervisor" in log.read_text(), 10, "the new file")
    stop_all(project)
