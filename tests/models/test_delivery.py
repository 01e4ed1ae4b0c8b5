"""Deliveries on every database, by the parts that a worker and a supervisor are made of."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from django.db import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connections,
    transaction,
)

from steady_queue_core import Discard, Snooze, limits_concurrency, task
from steady_queue_core.compat import TaskResultStatus, task_finished, task_started
from steady_queue_core.conformance import threads
from steady_queue_core.conformance.base import ending
from steady_queue_core.dialects import Ending
from steady_queue_core.errors import OutsideTransactionError, ProcessExitError, TaskCancelled
from steady_queue_core.models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    Job,
    Permit,
    Process,
    ReadyExecution,
    ScheduledExecution,
)
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.base.journal_reader import JournalSnapshot
from steady_queue_core.processes.supervisor.recovery import Rescuer
from steady_queue_core.processes.worker.attempt import RunResult
from steady_queue_core.processes.worker.executor import Executor
from steady_queue_core.processes.worker.sql_writes import is_write
from steady_queue_core.processes.worker.task_transaction import only_writes_to
from steady_queue_core.tasks import cancellation
from steady_queue_core.tasks.metadata import JobMetadata

from ..app.models import Item
from ..core.driver import Driver
from ..servers.kinds import KINDS
from .everywhere import on_every_database, on_every_server
from .recurrence import tasks

ERRORS = "steady_queue_core.errors"

#: What a task is to do beside writing its row.
ACTS: dict[str, Callable[[str], object]] = {}


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)


def act(function: Callable[[str], object]) -> Callable[[str], object]:
    ACTS[function.__name__] = function
    return function


@task(delivery="transactional", max_attempts=2)
def write(using: str, name: str = "nothing") -> str:
    Item.objects.using(using).create(name=name)
    return str(ACTS[name](using))


@task(delivery="transactional")
def write_something(using: str) -> object:
    Item.objects.using(using).create(name="something")
    return object()


@task
def follow() -> None:
    """Do nothing."""


@limits_concurrency(key="one", group="transactional")
@task(delivery="transactional", max_attempts=2)
def write_alone(using: str, fails: bool = False) -> None:
    Item.objects.using(using).create(name="alone")
    if fails:
        raise LookupError


@act
def nothing(using: str) -> str:
    assert connections[using].in_atomic_block
    return "done"


@act
def enqueue(using: str) -> object:
    return follow.enqueue()


@act
def nest(using: str) -> str:
    with transaction.atomic(using=using):
        Item.objects.using(using).create(name="inner")
    try:
        with transaction.atomic(using=using):
            Item.objects.using(using).create(name="undone")
            raise LookupError
    except LookupError:
        return "done"


@act
def fail(using: str) -> NoReturn:
    raise LookupError("no such order")


@act
def snooze(using: str) -> NoReturn:
    raise Snooze(3600)


@act
def discard(using: str) -> NoReturn:
    raise Discard("no longer wanted")


@act
def commit(using: str) -> None:
    transaction.commit(using=using)


@act
def roll_back(using: str) -> None:
    transaction.rollback(using=using)


@act
def turn_autocommit_on(using: str) -> None:
    transaction.set_autocommit(True, using=using)


@act
def close(using: str) -> None:
    connections[using].close()


@act
def leave_a_block_open(using: str) -> None:
    transaction.atomic(using=using).__enter__()


@act
def begin_for_good(using: str) -> None:
    with transaction.atomic(using=using, durable=True):
        """Django refuses: it is nested."""


@act
def mark(using: str) -> None:
    transaction.set_rollback(True, using=using)


@act
def handle_an_error(using: str) -> None:
    try:
        with transaction.atomic(using=using, savepoint=False):
            job = Job.objects.using(using).first()
            assert job is not None
            job.save(using=using, force_insert=True)
    except IntegrityError:
        pass


@act
def commit_in_sql(using: str) -> None:
    with connections[using].cursor() as cursor:
        cursor.execute("COMMIT")


@act
def commit_in_sql_and_begin_again(using: str) -> None:
    with connections[using].cursor() as cursor:
        cursor.execute("COMMIT")
        cursor.execute("BEGIN")
    Item.objects.using(using).create(name="after")


@act
def lose_the_claim(using: str) -> None:
    # As somebody does who has found the worker dead. On SQLite nobody else could now.
    claim = ClaimedExecution.objects.using(using).get()
    claim.token += 1 << 32
    claim.save(using=using)


class Delivery(Driver):
    """A worker in the calling thread, and the rows that its tasks have written."""

    @property
    def written(self) -> list[str]:
        return list(Item.objects.using(self.using).order_by("pk").values_list("name", flat=True))

    def rows(self, model: Any) -> Any:
        return model._default_manager.using(self.using)

    def run_one(self) -> RunResult:
        [claim] = self.claim()
        return self.run(claim)

    def failure(self) -> str:
        failed: FailedExecution = self.rows(FailedExecution).get()
        return failed.exception_class.rpartition(".")[2]


@on_every_database
def test_the_task_and_its_outcome_are_one_transaction(using: str) -> None:
    driver = Delivery(using)
    seen: list[Any] = []
    ACTS["look"] = lambda using: seen.append(driver.rows(ClaimedExecution).count())
    result = write.enqueue(using, "look")
    done = driver.run_one()
    assert (done.settled, done.outcome.ending) == (True, Ending.FINISHED)
    assert (seen, driver.written) == ([1], ["look"])
    assert not driver.rows(ClaimedExecution).exists()
    result.refresh()
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, "None")
    assert result.attempts == 1
    assert not connections[using].in_atomic_block


@on_every_database
def test_signals_are_sent_before_the_transaction_and_after_it(using: str) -> None:
    driver, told = Delivery(using), []

    def hear(signal: Any, task_result: Any, **kwargs: Any) -> None:
        told.append((task_result.status, connections[using].in_atomic_block))

    for signal in (task_started, task_finished):
        signal.connect(hear)
    try:
        write.enqueue(using)
        driver.work()
    finally:
        for signal in (task_started, task_finished):
            signal.disconnect(hear)
    assert told == [(TaskResultStatus.RUNNING, False), (TaskResultStatus.SUCCESSFUL, False)]


@on_every_database
def test_blocks_inside_are_savepoints(using: str) -> None:
    driver = Delivery(using)
    assert driver.finish(write.enqueue(using, "nest")).return_value == "done"
    assert driver.written == ["nest", "inner"]


@on_every_database
def test_jobs_that_the_task_enqueues_are_part_of_it(using: str) -> None:
    driver = Delivery(using)
    write.enqueue(using, "enqueue")
    driver.run_one()
    assert driver.rows(Job).count() == 2
    assert driver.rows(ReadyExecution).count() == 1
    ACTS["enqueue_and_fail"] = lambda using: (follow.enqueue(), fail(using))
    driver.work()
    write.enqueue(using, "enqueue_and_fail")
    driver.run_one()
    assert driver.rows(Job).count() == 3


@on_every_database
def test_what_a_task_has_written_that_raises_is_rolled_back(using: str) -> None:
    driver = Delivery(using)
    result = write.enqueue(using, "fail")
    done = driver.run_one()
    assert (done.settled, done.outcome.ending) == (None, Ending.RETRIED)
    assert driver.written == []
    driver.settle(done)
    assert driver.finish(result).status == TaskResultStatus.FAILED
    assert (driver.failure(), result.attempts, driver.written) == ("LookupError", 2, [])


@on_every_database
@pytest.mark.parametrize("name", ["snooze", "discard"])
def test_endings_that_are_raised_roll_back_too(using: str, name: str) -> None:
    driver = Delivery(using)
    result = write.enqueue(using, name)
    done = driver.run_one()
    how = Ending.RETRIED if name == "snooze" else Ending.FINISHED
    assert (done.settled, done.outcome.ending, driver.written) == (None, how, [])
    driver.settle(done)
    result.refresh()
    if name == "discard":
        assert result.metadata == {"discarded": "no longer wanted"}


@on_every_database
def test_a_value_that_cannot_be_stored_rolls_back(using: str) -> None:
    driver = Delivery(using)
    write_something.enqueue(using)
    done = driver.run_one()
    assert (done.settled, driver.written) == (None, [])
    assert done.outcome.exception_class.endswith("TaskArgumentError")


@on_every_database
@pytest.mark.parametrize(
    "name", ["commit", "roll_back", "turn_autocommit_on", "close", "leave_a_block_open"]
)
def test_a_task_that_tries_to_end_its_transaction_fails_and_leaves_nothing(
    using: str, name: str
) -> None:
    driver = Delivery(using)
    result = driver.finish(write.enqueue(using, name))
    # Not retried, although an attempt is left.
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    assert (driver.failure(), driver.written) == ("TransactionEndedError", [])
    assert driver.finish(write.enqueue(using)).status == TaskResultStatus.SUCCESSFUL


@on_every_database
def test_a_durable_block_is_refused_in_a_task_as_in_any_transaction(using: str) -> None:
    driver = Delivery(using)
    result = driver.finish(write.enqueue(using, "begin_for_good"))
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 2)
    assert (driver.failure(), driver.written) == ("RuntimeError", [])


@on_every_database
@pytest.mark.parametrize("name", ["commit_in_sql", "commit_in_sql_and_begin_again"])
def test_a_task_that_ends_its_transaction_unnoticed_is_found_out(using: str, name: str) -> None:
    """What it has committed stays, the rest does not."""
    driver = Delivery(using)
    result = driver.finish(write.enqueue(using, name))
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    assert (driver.failure(), driver.written) == ("TransactionEndedError", [name])
    assert driver.finish(write.enqueue(using)).status == TaskResultStatus.SUCCESSFUL


@on_every_database
@pytest.mark.parametrize("name", ["mark", "handle_an_error"])
def test_a_transaction_that_is_to_be_rolled_back_is_no_success(using: str, name: str) -> None:
    driver = Delivery(using)
    result = driver.finish(write.enqueue(using, name))
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 2)
    assert (driver.failure(), driver.written) == ("RollbackRequestedError", [])


@on_every_database
def test_a_claim_that_is_lost_takes_the_writes_along(using: str) -> None:
    driver = Delivery(using)
    write.enqueue(using, "lose_the_claim")
    done = driver.run_one()
    assert (done.settled, driver.written) == (False, [])
    [job] = driver.rows(Job)
    assert (job.finished_at, job.attempts) == (None, 0)


@on_every_server
def test_a_claim_that_others_have_ended_takes_the_writes_along(using: str) -> None:
    """They need not wait for the task: nothing of the queue is locked while it runs."""
    driver = Delivery(using)

    def end_it(using: str) -> None:
        def settle() -> set[int]:
            row = driver.rows(ClaimedExecution).get()
            outcome = ending(Ending.RELEASED, claim)._replace(token=row.token)
            return driver.dialect.settle(connections[using], [outcome])

        assert threads.run_all(using, [settle], 20.0) == [{claim.job_id}]

    ACTS["end_it"] = end_it
    write.enqueue(using, "end_it")
    [claim] = driver.claim()
    assert driver.run(claim).settled is False
    assert driver.written == []
    assert driver.rows(ReadyExecution).get().pk == claim.job_id


@on_every_database
def test_an_outcome_that_cannot_be_stored_takes_the_writes_along(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Delivery(using)
    write.enqueue(using)
    [claim] = driver.claim()

    def refuse(connection: Any, outcomes: Any) -> NoReturn:
        raise IntegrityError("refused")

    monkeypatch.setattr(driver.dialect, "settle", refuse)
    done = driver.run(claim)
    monkeypatch.undo()
    assert (done.settled, done.outcome.ending, driver.written) == (None, Ending.RETRIED, [])
    driver.settle(done)


@on_every_database
def test_a_settlement_that_spoils_the_transaction_is_no_success(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Delivery(using)
    write.enqueue(using)
    [claim] = driver.claim()
    settle = driver.dialect.settle

    def spoil(connection: Any, outcomes: Any) -> set[int]:
        held = settle(connection, outcomes)
        connection.set_rollback(True)
        return held

    monkeypatch.setattr(driver.dialect, "settle", spoil)
    done = driver.run(claim)
    monkeypatch.undo()
    assert (done.settled, done.outcome.ending, driver.written) == (None, Ending.RETRIED, [])
    assert done.task_result is not None
    assert done.task_result.status == TaskResultStatus.READY
    assert done.task_result.finished_at is None


@on_every_database
def test_callbacks_run_after_the_commit_and_cannot_undo_it(using: str) -> None:
    driver, called = Delivery(using), []

    def callback() -> None:
        called.append((connections[using].in_atomic_block, driver.rows(ClaimedExecution).count()))
        Item.objects.using(using).create(name="called")

    def broken() -> NoReturn:
        raise SystemExit("a callback fails")

    def register(using: str) -> None:
        for function in (callback, broken, callback):
            transaction.on_commit(function, using=using)

    ACTS["register"] = register
    write.enqueue(using, "register")
    assert driver.run_one().settled is True
    # As in Django, those after one that fails are not called.
    assert (called, driver.written) == ([(False, 0)], ["register", "called"])


@on_every_database
def test_callbacks_of_a_task_that_fails_are_not_called(using: str) -> None:
    driver, called = Delivery(using), []

    def register_and_fail(using: str) -> NoReturn:
        transaction.on_commit(lambda: called.append(1), using=using)
        raise LookupError

    ACTS["register_and_fail"] = register_and_fail
    write.enqueue(using, "register_and_fail")
    driver.work()
    write.enqueue(using)
    driver.work()
    assert called == []


@on_every_database
def test_the_permit_passes_on_with_the_commit(using: str) -> None:
    driver = Delivery(using)
    write_alone.enqueue(using, fails=True)
    write_alone.enqueue(using)
    write_alone.enqueue(using)
    first, second, third = driver.rows(Job).order_by("pk").values_list("pk", flat=True)
    done = driver.run_one()
    assert done.settled is None
    assert list(driver.rows(Permit).values_list("pk", flat=True)) == [first]
    driver.settle(done)  # It is retried at once, and goes behind nobody: it is the oldest.
    done = driver.run_one()
    driver.settle(done)
    assert driver.rows(FailedExecution).count() == 1
    assert driver.run_one().settled is True
    assert list(driver.rows(Permit).values_list("pk", flat=True)) == [third]
    assert driver.written == ["alone"]
    assert not driver.rows(BlockedExecution).exists()
    assert second < third


@on_every_database
def test_a_cancelled_task_is_rolled_back(using: str) -> None:
    driver = Delivery(using)

    def be_cancelled(using: str) -> NoReturn:
        raise TaskCancelled

    ACTS["be_cancelled"] = be_cancelled
    write.enqueue(using, "be_cancelled")
    [claim] = driver.claim()
    cancellation.requested.add((claim.job_id, claim.token))
    try:
        done = driver.run(claim)
    finally:
        cancellation.requested.clear()
    assert done.outcome.exception_class == f"{ERRORS}.TaskCancelled"
    assert (done.settled, driver.written) == (None, [])


@on_every_database
def test_a_cancellation_that_is_on_its_way_when_the_task_returns_wins(using: str) -> None:
    driver, asked = Delivery(using), []

    def end_interruptions(job_id: int) -> bool:
        asked.append(job_id)
        return True

    driver.executor.end_interruptions = end_interruptions
    write.enqueue(using)
    [claim] = driver.claim()
    cancellation.requested.add((claim.job_id, claim.token))
    try:
        done = driver.run(claim)
    finally:
        cancellation.requested.clear()
    assert (asked, done.settled, driver.written) == ([claim.job_id], None, [])


@on_every_database
def test_a_job_of_another_database_is_refused(using: str) -> None:
    driver = Delivery(using)
    driver.executor = Executor(driver.name, driver.clock, using="somewhere")
    write.enqueue(using)
    done = driver.run_one()
    assert done.outcome.exception_class == f"{ERRORS}.UndeliverableError"
    assert driver.written == []


@pytest.mark.parametrize(
    "using",
    [
        pytest.param(
            alias, marks=pytest.mark.django_db(databases=["default", alias], transaction=True)
        )
        for alias in KINDS
    ],
)
def test_writes_to_other_databases_are_refused_until_the_commit(using: str) -> None:
    driver = Delivery(using)

    def write_elsewhere(using: str) -> None:
        assert not Item.objects.using("default").exists()
        Item.objects.using("default").create(name="elsewhere")

    def register_elsewhere(using: str) -> None:
        transaction.on_commit(lambda: write_elsewhere(using), using=using)

    ACTS.update({"write_elsewhere": write_elsewhere, "register_elsewhere": register_elsewhere})
    write.enqueue(using, "write_elsewhere")
    done = driver.run_one()
    assert done.outcome.exception_class == f"{ERRORS}.OutsideTransactionError"
    assert "and writes to 'default', where nothing would undo that" in done.outcome.message
    driver.settle(done)
    driver.work()
    write.enqueue(using, "register_elsewhere")
    assert driver.run_one().settled is True
    assert Item.objects.using("default").get().name == "elsewhere"


@pytest.mark.parametrize("using", ["default"])
@pytest.mark.django_db
def test_what_is_a_write_is_told_by_its_words(using: str) -> None:
    with connections[using].cursor() as cursor, only_writes_to("elsewhere"):
        for statement in (
            "SELECT 1",
            "/* insert */ SELECT 1",
            "WITH a AS (SELECT 'delete' AS updated) SELECT updated FROM a",
        ):
            cursor.execute(statement)
        for statement in (
            "INSERT INTO a VALUES (1)",
            " \n(delete from a)",
            "update a set b = 1",
            "/* of a tool */ -- and by hand\nINSERT INTO a VALUES (1)",
            "WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a",
            "with a as (delete from b returning c) select c from a",
            "WITH a AS (SELECT 1) UPDATE b SET c = 1",
        ):
            with pytest.raises(OutsideTransactionError):
                cursor.execute(statement)
    assert "refuse" not in repr(connections[using].execute_wrappers)


@pytest.mark.parametrize("using", ["default"])
@pytest.mark.django_db
def test_a_query_that_locks_rows_is_no_write(using: str) -> None:
    for lock in ("FOR UPDATE", "for no key update", "FOR KEY SHARE"):
        assert not is_write(f"WITH a AS (SELECT 1) SELECT * FROM a {lock} SKIP LOCKED", None)


@pytest.mark.parametrize("using", ["default"])
@pytest.mark.django_db
def test_a_statement_that_the_driver_puts_together_is_told_as_well(using: str) -> None:
    sql = pytest.importorskip("psycopg").sql
    write = sql.SQL("INSERT INTO {} VALUES (1)").format(sql.Identifier("a"))
    read = sql.SQL("SELECT 1 FROM {}").format(sql.Identifier("insert"))
    unopened = SimpleNamespace(connection=None)
    assert [is_write(each, unopened) for each in (write, read)] == [True, False]
    assert [is_write(each, unopened) for each in (b"INSERT", b"SELECT 1")] == [True, False]


@on_every_server
def test_a_connection_that_the_server_ends_is_a_failure_like_others(using: str) -> None:
    driver = Delivery(using)

    def be_cut_off(using: str) -> None:
        with connections[using].cursor() as cursor:
            postgres = connections[using].vendor == "postgresql"
            cursor.execute("SELECT pg_backend_pid()" if postgres else "SELECT connection_id()")
            [(session,)] = cursor.fetchall()

        def end() -> None:
            end = "SELECT pg_terminate_backend(%d)" if postgres else "KILL %d"
            with connections[using].cursor() as cursor:
                cursor.execute(end % session)

        threads.run_all(using, [end], 20.0)

    ACTS["be_cut_off"] = be_cut_off
    result = write.enqueue(using, "be_cut_off")
    done = driver.run_one()
    assert (done.settled, done.outcome.ending) == (None, Ending.RETRIED)
    assert isinstance(done.error, DatabaseError | InterfaceError)
    assert driver.written == []
    driver.settle(done)
    ACTS["be_cut_off"] = nothing
    assert driver.finish(result).status == TaskResultStatus.SUCCESSFUL
    assert driver.written == ["be_cut_off"]


@on_every_database
def test_a_transaction_that_cannot_begin_is_postponed_and_costs_no_attempt(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Delivery(using)
    write.enqueue(using)
    [claim] = driver.claim()

    def busy(connection: Any) -> NoReturn:
        raise OperationalError("busy")

    monkeypatch.setattr(driver.dialect, "transaction", busy)
    monkeypatch.setattr(driver.dialect, "is_contention", lambda connection, error: True)
    done = driver.run(claim)
    monkeypatch.undo()
    assert (done.outcome.ending, done.outcome.attempts, done.outcome.delay) == (
        Ending.RETRIED, 0, 1.0,
    )  # fmt: skip
    assert driver.written == []
    driver.settle(done)
    assert driver.rows(ScheduledExecution).count() == 1


# --- after a death --------------------------------------------------------------------------------


@task(delivery="at_least_once", max_attempts=2, max_crashes=3)
def often() -> NoReturn:
    raise LookupError


@task(delivery="at_most_once")
def once(snoozes: bool = False) -> None:
    if snoozes:
        raise Snooze(60)


class Death:
    """What is left of a worker, for a supervisor to find."""

    def __init__(self, using: str) -> None:
        self.using, self.driver = using, Delivery(using)

    def die(self, snapshot: JournalSnapshot | None = None) -> None:
        """Claim everything that is ready, die, and have the claims rescued."""
        self.driver.claim()
        error = ProcessExitError("It was killed.")
        Rescuer(QueueDatabase(self.using)).rescue_process(self.driver.name, snapshot, error)
        self.driver = Delivery(self.using)


@on_every_database
def test_a_crash_counts_no_attempt_of_a_job_that_is_delivered_at_least_once(using: str) -> None:
    death, names = Death(using), []
    result = often.using(max_crashes=4, metadata={"a": 1}).enqueue()
    for crashes in range(1, 4):
        names.append(death.driver.name)
        death.die()
        [job] = death.driver.rows(Job)
        metadata = JobMetadata.read(job.metadata)
        assert (job.attempts, job.finished_at, len(metadata.crashes)) == (0, None, crashes)
        assert metadata.crashes[-1].startswith(f"{names[-1]} (pid ")
        result.refresh()
        assert result.status == TaskResultStatus.READY
        assert (result.worker_ids, len(result.errors)) == (names, crashes)
        assert result.metadata == {"a": 1}
    # All attempts are left: these end by themselves.
    assert death.driver.finish(result).status == TaskResultStatus.FAILED
    assert (death.driver.failure(), result.attempts) == ("LookupError", 5)
    assert JobMetadata.read(death.driver.rows(Job).get().metadata).crashes == ()


@on_every_database
def test_poison_fails_with_the_list_of_its_processes(using: str) -> None:
    death, names = Death(using), []
    result = often.enqueue()
    for _ in range(3):
        names.append(death.driver.name)
        death.die(JournalSnapshot(frozenset([int(result.id)])))
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    failed = death.driver.rows(FailedExecution).get()
    assert failed.exception_class == f"{ERRORS}.TooManyCrashesError"
    assert failed.message.startswith("The job was running 3 times when its process ended")
    assert all(f"{name} (pid " in failed.message for name in names)
    # Retried by a person, it starts over.
    assert death.driver.rows(Job).get().retry()
    death.die()
    result.refresh()
    assert result.status == TaskResultStatus.READY


@on_every_database
def test_crashes_are_counted_however_large_the_metadata_are(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0, max_payload_bytes=2000)
    death = Death(using)
    result = often.using(max_crashes=20, metadata={"text": "x" * 1900}).enqueue()
    for crashes in range(1, 6):
        death.die()
        [job] = death.driver.rows(Job)
        assert len(JobMetadata.read(job.metadata).crashes) == crashes
    result.refresh()
    assert result.status == TaskResultStatus.READY


@on_every_database
def test_the_backend_says_how_many_processes_a_job_may_take_along(
    using: str, settings: Any
) -> None:
    settings.TASKS = tasks(using, backoff=0, max_crashes=1, delivery="at_least_once")
    death = Death(using)
    result = follow.enqueue()
    death.die()
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert death.driver.failure() == "TooManyCrashesError"


@on_every_database
def test_a_back_off_does_not_give_up_at_a_crash(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=lambda exception, task_result: None)
    death = Death(using)
    result = often.enqueue()
    death.die()
    result.refresh()
    assert result.status == TaskResultStatus.READY
    assert death.driver.rows(ScheduledExecution).count() == 1


@on_every_database
def test_a_cancelled_job_does_not_run_again_after_a_crash(using: str) -> None:
    death = Death(using)
    result = often.enqueue()
    [claim] = death.driver.claim()
    assert result.cancel()
    Rescuer(QueueDatabase(using)).rescue_process(
        death.driver.name, None, ProcessExitError("It was killed.")
    )
    result.refresh()
    assert (result.status, claim.job_id) == (TaskResultStatus.FAILED, int(result.id))


@on_every_database
def test_a_job_that_had_not_started_counts_no_crash(using: str) -> None:
    death = Death(using)
    often.enqueue()
    death.die(JournalSnapshot())
    assert JobMetadata.read(death.driver.rows(Job).get().metadata).crashes == ()
    assert death.driver.rows(ReadyExecution).count() == 1


@on_every_database
@pytest.mark.parametrize(
    ("left", "error"),
    [
        (None, "ProcessExitError"),  # The journal is lost.
        (JournalSnapshot(), "NotRepeatedError"),  # It says that nothing had started.
        ("all", "ProcessExitError"),
    ],
)
def test_nobody_but_its_worker_gives_back_what_is_to_start_once(
    using: str, left: Any, error: str
) -> None:
    death = Death(using)
    result = once.enqueue()
    death.die(JournalSnapshot(frozenset([int(result.id)])) if left == "all" else left)
    result.refresh()
    assert (result.status, death.driver.failure()) == (TaskResultStatus.FAILED, error)
    # A person may decide otherwise.
    assert death.driver.rows(Job).get().retry()
    assert death.driver.finish(result).status == TaskResultStatus.SUCCESSFUL


@on_every_database
def test_what_is_to_start_once_is_not_given_back_late_either(using: str) -> None:
    death = Death(using)
    worker = death.driver.process
    rescuer = Rescuer(QueueDatabase(using))
    rescuer.rescue_process(death.driver.name, None, ProcessExitError("It was killed."))
    once.enqueue()
    # As a statement does that was under way when its process was killed.
    row = death.driver.rows(ReadyExecution).get()
    death.driver.rows(ClaimedExecution).create(
        job_id=row.pk, queue_name=row.queue_name, rank=row.rank, token=1, created_at=row.created_at,
        process_id=worker.id,
    )  # fmt: skip
    row.delete()
    rescuer.rescue_orphans()
    assert Delivery(using).failure() == "NotRepeatedError"
    assert not death.driver.rows(Process).filter(name=death.driver.name).exists()


@on_every_database
def test_a_task_that_is_to_start_once_does_not_come_back(using: str) -> None:
    driver = Delivery(using)
    result = driver.finish(once.enqueue(snoozes=True))
    assert (result.status, driver.failure()) == (TaskResultStatus.FAILED, "TooManySnoozesError")


@on_every_database
def test_a_worker_that_breaks_off_gives_back_all_but_what_is_to_start_once(using: str) -> None:
    driver = Delivery(using)
    once.enqueue()
    often.enqueue()
    first, second = driver.claim()
    done = driver.executor.broken_off(first)
    assert done.outcome.exception_class == f"{ERRORS}.NotRepeatedError"
    assert driver.executor.broken_off(second).outcome.ending is Ending.RELEASED
