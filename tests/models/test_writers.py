"""What somebody can do who writes to the tables without the secret key: each row of the table in
docs/payloads.md is tried, on a backend that signs payloads and on one that does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pytest
from django.db import connections
from django.utils import timezone

from steady_queue_core import (
    Batch,
    Previous,
    Workflow,
    call,
    chain,
    change_recurring_task,
    group,
    schedule_recurring_task,
    task,
    unschedule_recurring_task,
)
from steady_queue_core.arguments import encode, encode_call
from steady_queue_core.dialects import JobKey, MemberState
from steady_queue_core.errors import (
    ProcessExitError,
    UnregisteredTaskError,
    UnusableRecurringTaskError,
)
from steady_queue_core.features.callbacks.options import Callback
from steady_queue_core.features.rates.starts import RatedStarts
from steady_queue_core.models import (
    BatchMember,
    Checkpoint,
    Dependency,
    FailedExecution,
    Job,
    JobBatch,
    Pause,
    ReadyExecution,
    RecurringTask,
    Retention,
    ScheduledExecution,
    Step,
    WaitingExecution,
)
from steady_queue_core.payloads import PayloadError
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.supervisor.recovery import Rescuer
from steady_queue_core.tasks.metadata import JobMetadata

from ..core.driver import Driver
from ..documents import page, section
from .recurrence import HOUR, MINUTE, Plan, tasks

#: How a forged row is refused.
REFUSALS = (PayloadError, UnregisteredTaskError, UnusableRecurringTaskError)
#: What a writer wants to have run, or to be believed.
EVE = "Eve"
FORGED, FORGED_CALL = encode(EVE), encode_call([EVE], {})
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)

RAN: list[Any] = []
CHARGED: list[str] = []
#: What :func:`look` asks its context.
LOOK: list[Callable[[Any], object]] = []


@task
def pay(account: Any) -> Any:
    RAN.append(account)
    return account


@task
def refund(account: str) -> None:
    RAN.append("refund")


@task
def told(*args: Any) -> None:
    RAN.append("told")


@task
def price(amount: int) -> int:
    return amount


@task
def fail() -> None:
    raise LookupError


@task(unique=True)
def pay_once(account: str) -> None:
    RAN.append(account)


@task(takes_context=True)
def look(context: Any) -> None:
    RAN.append(LOOK[0](context))


@task(takes_context=True)
def tell(context: Any) -> None:
    context.progress(1, 4)


@task(takes_context=True, max_attempts=3)
def resume(context: Any, name: str) -> None:
    RAN.append(context.checkpointed)
    context.checkpoint(f"{name} {len(RAN)}")
    raise LookupError


@task(takes_context=True, max_attempts=2)
def pay_in_steps(context: Any, name: str) -> None:
    RAN.append(context.step("charge", charge, name))
    raise LookupError


@task(takes_context=True)
def grow(context: Any) -> None:
    node = context.workflow.add(call(price, 1), name="price")
    context.workflow.add(call(pay, node.result))


def charge(name: str) -> str:
    CHARGED.append(name)
    return name


def no_task(*args: Any) -> None:
    RAN.append(EVE)


NO_TASK = f"{__name__}.no_task"


class Writer:
    """Somebody who writes to the tables, beside a worker."""

    def __init__(self) -> None:
        self.driver = Driver()

    def work(self) -> None:
        """Run everything that is ready; raise what has refused a row."""
        for done in self.driver.work():
            if isinstance(done.error, REFUSALS):
                raise done.error

    def attempt(self) -> None:
        """Run what is ready once."""
        for claim in self.driver.claim():
            self.driver.settle(self.driver.run(claim))

    def die(self) -> None:
        """Claim what is ready, be killed, and let a supervisor see to the claims."""
        self.driver.claim()
        gone = ProcessExitError("It was killed.")
        Rescuer(QueueDatabase("default")).rescue_process(self.driver.name, None, gone)
        self.driver = Driver()


Act: TypeAlias = Callable[[Writer], bool]
#: The acts, with the beginnings of their rows in the table. Each is refused, or returns whether it
#: has succeeded.
ACTS: list[tuple[str, Act]] = []


def act(row: str) -> Callable[[Act], Act]:
    """Register an act of this row."""

    def register(function: Act) -> Act:
        ACTS.append((row, function))
        return function

    return register


def promises() -> dict[str, tuple[str, str]]:
    """Return what the page says without and with signatures, by its rows without their links."""
    text = section(page("payloads.md"), "What a writer in the database can do")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    return {re.sub(r"\[(.+?)\]\(.+?\)", r"\1", row): (plain, signed) for row, plain, signed in rows}


@pytest.fixture(autouse=True)
def _project(settings: Any) -> None:
    settings.STEADY_QUEUE = {"scheduler": {"dynamic_tasks_enabled": True}}
    for each in (RAN, CHARGED, LOOK):
        each.clear()


def insert(path: str, arguments: str) -> None:
    insert_job(
        Job(
            queue_name="default",
            task_path=path,
            backend_name="default",
            arguments=arguments,
            enqueued_at=timezone.now(),
        )
    )


def insert_job(job: Job) -> None:
    job.save(force_insert=True)
    make_ready(job)


def make_ready(job: Job) -> None:
    ReadyExecution.objects.create(
        job_id=job.pk,
        queue_name=job.queue_name,
        rank=job.rank,
        turn=job.pk,
        created_at=timezone.now(),
    )


def change_metadata(jobs: Any = Job.objects, **changes: Any) -> None:
    """Change the metadata of jobs."""
    for job in jobs.all():
        job.metadata = replace(JobMetadata.read(job.metadata), **changes).text()
        job.save()


def members(function: Any) -> Any:
    return BatchMember.objects.filter(job__task_path=function.module_path).order_by("pk")


# --- calls ----------------------------------------------------------------------------------------


@act("run a registered task with arguments")
def in_a_row_of_their_own(writer: Writer) -> bool:
    insert(pay.module_path, FORGED_CALL)
    writer.work()
    return RAN == [EVE]


@act("run a registered task with arguments")
def in_the_row_of_another_call(writer: Writer) -> bool:
    pay.enqueue("Ada")
    Job.objects.update(arguments=FORGED_CALL)
    writer.work()
    return RAN == [EVE]


@act("run a registered task with arguments")
def in_the_row_of_another_task(writer: Writer) -> bool:
    pay.enqueue("Ada")
    Job.objects.update(task_path=refund.module_path)
    writer.work()
    return RAN == ["refund"]


@act("run a registered task with arguments")
def at_the_end_of_a_batch(writer: Writer) -> bool:
    with Batch(on_success=call(pay, "Ada")):
        price.enqueue(1)
    row = JobBatch.objects.get()
    row.callbacks = str(row.callbacks).replace("Ada", EVE)
    row.save()
    writer.work()
    return RAN == [EVE]


@act("run code that is not")
def as_a_job(writer: Writer) -> bool:
    insert(NO_TASK, FORGED_CALL)
    writer.work()
    return RAN == [EVE]


@act("run code that is not")
def as_a_callback(writer: Writer) -> bool:
    pay.enqueue("Ada")
    change_metadata(on_success=tuple(Callback(NO_TASK, "default", 0, "default")))
    writer.work()
    return RAN == ["Ada", EVE]


@act("run code that is not")
def as_a_recurring_task(writer: Writer) -> bool:
    add_recurring_task(NO_TASK)
    return runs("theirs")


@act("run a job again")
def by_copying_its_row(writer: Writer) -> bool:
    writer.driver.finish(pay.enqueue("Ada"))
    job = Job.objects.get()
    job.pk, job.finished_at = None, None
    insert_job(job)
    writer.work()
    return RAN == ["Ada", "Ada"]


@act("run a job again")
def by_copying_its_arguments(writer: Writer) -> bool:
    pay.enqueue("Ada")
    pay.enqueue("Ben")
    Job.objects.update(arguments=Job.objects.earliest("pk").arguments)
    writer.work()
    return RAN == ["Ada", "Ada"]


# --- recurring tasks ------------------------------------------------------------------------------


def add_recurring_task(path: str) -> None:
    RecurringTask.objects.create(
        key="theirs",
        task_path=path,
        schedule="* * * * *",
        timezone="UTC",
        arguments=FORGED_CALL,
        backend_name="default",
        queue_name="default",
        static=False,
        created_at=timezone.now(),
        updated_at=timezone.now(),
    )


def runs(key: str) -> bool:
    """Return whether the task is enqueued within a minute; raise what refuses it."""
    plan = Plan("default")
    plan.begin()
    plan.pass_by(MINUTE)
    if not plan.slots(key):
        plan.row(key).run_now()
    return bool(plan.slots(key))


def schedule_payment(**options: Any) -> RecurringTask:
    schedule_recurring_task("pay", pay, schedule="* * * * *", args=["Ada"], **options)
    return RecurringTask.objects.get()


@act("add or change a recurring task")
def add_one(writer: Writer) -> bool:
    add_recurring_task(pay.module_path)
    found = runs("theirs")
    writer.work()
    return found and RAN == [EVE]


@act("add or change a recurring task")
def change_its_arguments(writer: Writer) -> bool:
    schedule_payment()
    RecurringTask.objects.update(arguments=FORGED_CALL)
    found = runs("pay")
    writer.work()
    return found and RAN == [EVE]


@act("add or change a recurring task")
def change_its_schedule(writer: Writer) -> bool:
    schedule_payment()
    RecurringTask.objects.update(schedule="*/1 * * * *")
    return runs("pay")


@act("put the row of a recurring task back")
def that_was_removed(writer: Writer) -> bool:
    row = schedule_payment()
    unschedule_recurring_task("pay")
    row.save(force_insert=True)
    return runs("pay")


@act("put the row of a recurring task back")
def that_was_changed(writer: Writer) -> bool:
    row = schedule_payment()
    change_recurring_task("pay", args=["Ben"])
    row.save()
    found = runs("pay")
    writer.work()
    return found and RAN == ["Ada"]


@act("have a recurring task run more often")
def by_its_count_of_runs(writer: Writer) -> bool:
    schedule_payment(repeats=1)
    plan = Plan("default")
    plan.begin()
    counts = []
    for _ in range(2):
        plan.look()
        plan.pass_by(MINUTE)
        plan.pass_by(MINUTE)
        counts.append(len(plan.slots("pay")))
        RecurringTask.objects.update(runs=0)
    return counts == [1, 2]


# --- what jobs have stored ------------------------------------------------------------------------


@act("forge a result")
def of_their_own(writer: Writer) -> bool:
    result = writer.driver.finish(pay.enqueue("Ada"))
    Job.objects.update(return_value=FORGED)
    result.refresh()
    return result.return_value == EVE


@act("forge a result")
def of_another_job(writer: Writer) -> bool:
    result, other = pay.enqueue("Ada"), pay.enqueue("Ben")
    writer.work()
    Job.objects.update(return_value=Job.objects.get(pk=int(other.id)).return_value)
    result.refresh()
    return result.return_value == "Ben"


@act("forge a checkpoint")
def with_a_checkpoint_of_their_own(writer: Writer) -> bool:
    resume.enqueue("Ada")
    writer.attempt()
    Checkpoint.objects.update(data=FORGED)
    writer.work()
    return RAN[:2] == [None, EVE]


@act("forge a checkpoint")
def with_that_of_another_job(writer: Writer) -> bool:
    resume.enqueue("Ada")
    resume.enqueue("Ben")
    writer.attempt()
    Checkpoint.objects.update(data=Checkpoint.objects.latest("pk").data)
    writer.work()
    return RAN[:4] == [None, None, "Ben 2", "Ben 2"]


@act("put an earlier checkpoint")
def two_attempts_later(writer: Writer) -> bool:
    resume.enqueue("Ada")
    writer.attempt()
    data = Checkpoint.objects.get().data
    writer.attempt()
    Checkpoint.objects.update(data=data)
    writer.work()
    return RAN == [None, "Ada 1", "Ada 1"]


@act("forge what a step")
def with_a_value_of_their_own(writer: Writer) -> bool:
    pay_in_steps.enqueue("Ada")
    writer.attempt()
    Step.objects.update(data=FORGED)
    writer.work()
    return RAN == ["Ada", EVE]


@act("forge what a step")
def with_the_value_of_another_job(writer: Writer) -> bool:
    pay_in_steps.enqueue("Ada")
    pay_in_steps.enqueue("Ben")
    writer.attempt()
    Step.objects.update(data=Step.objects.latest("pk").data)
    writer.work()
    return RAN == ["Ada", "Ben", "Ben", "Ben"]


@act("have a step taken again")
def by_deleting_it(writer: Writer) -> bool:
    pay_in_steps.enqueue("Ada")
    writer.attempt()
    Step.objects.all().delete()
    writer.work()
    return CHARGED == ["Ada", "Ada"]


@act("forge what a job says of its progress")
def by_its_checkpoint(writer: Writer) -> bool:
    result = writer.driver.finish(tell.enqueue())
    Checkpoint.objects.update(done=3)
    result.refresh()
    return str(result.progress) == "3 of 4 (75%)"


# --- chains, groups, batches ----------------------------------------------------------------------

OTHER_RESULTS = "have a job of a chain, group or workflow be given the result of another job"


@act(OTHER_RESULTS)
def by_its_dependency(writer: Writer) -> bool:
    for amount in (1, 999):
        chain(call(price, amount), call(pay, Previous())).enqueue()
    Dependency.objects.update(parent_id=Dependency.objects.latest("job_id").parent_id)
    writer.work()
    return RAN == [999, 999]


@act(OTHER_RESULTS)
def in_another_number(writer: Writer) -> bool:
    chain(group(call(price, 1), call(price, 2)), call(pay, Previous())).enqueue()
    writer.attempt()
    members(price).last().delete()
    writer.work()
    return RAN == [[1]]


@act(OTHER_RESULTS)
def in_another_order(writer: Writer) -> bool:
    chain(group(call(price, 1), call(price, 2)), call(pay, Previous())).enqueue()
    writer.attempt()
    first, second = members(price)
    for pk, job_id in ((first.pk, None), (second.pk, first.job_id), (first.pk, second.job_id)):
        BatchMember.objects.filter(pk=pk).update(job_id=job_id)
    writer.work()
    return RAN == [[2, 1]]


@act("have it be given `None`")
def by_the_state_of_a_member(writer: Writer) -> bool:
    chain(call(price, 1), call(pay, Previous())).enqueue()
    writer.attempt()
    members(price).update(state=int(MemberState.FAILED))
    writer.work()
    return RAN == [None]


@act("have a job run although what it waits for")
def before_the_other_one(writer: Writer) -> bool:
    chain(call(price, 1), call(pay, "Ada")).enqueue()
    ReadyExecution.objects.all().delete()
    waiting = WaitingExecution.objects.get()
    make_ready(waiting.job)
    waiting.delete()
    writer.work()
    return RAN == ["Ada"]


@act("have `context.workflow.add()` find")
def by_the_name_of_its_member(writer: Writer) -> bool:
    workflow = Workflow()
    workflow.add(call(grow))
    workflow.add(call(price, 999), name="other")
    workflow.enqueue()
    BatchMember.objects.filter(name="other").update(name="price")
    writer.work()
    return RAN == [999]


@act("have a batch")
def by_its_callbacks(writer: Writer) -> bool:
    for name in ("Ada", "Ben"):
        with Batch(on_success=call(pay, name)):
            price.enqueue(1)
    JobBatch.objects.update(callbacks=JobBatch.objects.earliest("pk").callbacks)
    writer.work()
    return RAN == ["Ada", "Ada"]


# --- metadata -------------------------------------------------------------------------------------

OPTIONS = "change the options in a job's metadata"


def sees(writer: Writer, what: Callable[[Any], object], **changes: Any) -> bool:
    """Return whether a task sees what was changed in its metadata."""
    LOOK.append(what)
    look.enqueue()
    change_metadata(**changes)
    writer.work()
    return RAN == [True]


@act(OPTIONS)
def its_delivery(writer: Writer) -> bool:
    def is_transactional(context: Any) -> bool:
        return connections["default"].in_atomic_block

    return sees(writer, is_transactional, delivery="transactional")


@act(OPTIONS)
def its_time_limit(writer: Writer) -> bool:
    return sees(writer, lambda context: context.deadline is not None, timeout=60.0)


@act(OPTIONS)
def its_own_metadata(writer: Writer) -> bool:
    return sees(writer, lambda context: context.metadata == {"by": EVE}, user={"by": EVE})


@act(OPTIONS)
def its_headers(writer: Writer) -> bool:
    return sees(writer, lambda context: context.headers == {"by": EVE}, headers={"by": EVE})


@act(OPTIONS)
def its_retention(writer: Writer) -> bool:
    pay.enqueue("Ada")
    change_metadata(retention="forever")
    writer.work()
    return RAN == ["Ada"] and Retention.objects.exists()


@act(OPTIONS)
def its_callback(writer: Writer) -> bool:
    pay.enqueue("Ada")
    change_metadata(on_success=tuple(Callback.of(told)))
    writer.work()
    return RAN == ["Ada", "told"]


@act(OPTIONS)
def the_callback_of_its_failure(writer: Writer) -> bool:
    fail.enqueue()
    change_metadata(on_failure=tuple(Callback.of(told)))
    writer.work()
    return RAN == ["told"]


@act(OPTIONS)
def the_callback_of_its_death(writer: Writer) -> bool:
    pay.enqueue("Ada")
    change_metadata(on_failure=tuple(Callback.of(told)))
    writer.die()
    writer.work()
    Job.objects.retry_failed()
    writer.work()
    return RAN == ["told", "Ada"]


@act("show other `metadata=`")
def with_a_result_that_holds(writer: Writer) -> bool:
    result = writer.driver.finish(pay.using(metadata={"by": "Ada"}).enqueue("Ada"))
    change_metadata(user={"by": EVE})
    result.refresh()
    return result.metadata == {"by": EVE} and result.return_value == "Ada"


@act("show a batch with")
def with_other_metadata(writer: Writer) -> bool:
    with Batch(metadata={"by": "Ada"}) as batch:
        price.enqueue(1)
    JobBatch.objects.update(metadata=encode({"by": EVE}))
    return Batch.get(batch.id).metadata == {"by": EVE}


@act("show a batch with")
def with_other_members(writer: Writer) -> bool:
    stored = [group(call(price, amount)).enqueue() for amount in (1, 999)]
    writer.work()
    BatchMember.objects.update(batch_id=stored[0].id)
    return stored[0].values() == [1, 999]


@act("show a batch with")
def as_that_of_another_job(writer: Writer) -> bool:
    first, second = Batch(), Batch()
    for batch in (first, second):
        with batch:
            look.enqueue()
    change_metadata(batch=(first.id,))
    LOOK.append(lambda context: context.batch.id)
    writer.work()
    return len(RAN) == 2 and {*RAN} == {first.id}


@act("change how a job is treated whose process was lost")
def by_another_delivery(writer: Writer) -> bool:
    job_id = int(pay.enqueue("Ada").id)
    change_metadata(delivery="at_least_once")
    pay.enqueue("Ben")
    writer.die()
    return [row.pk for row in ReadyExecution.objects.all()] == [job_id]


@act("change how a job is treated whose process was lost")
def by_another_period(writer: Writer) -> bool:
    fail.enqueue()
    change_metadata(failure_retention="forever")
    writer.driver.work()
    return FailedExecution.objects.exists() and Retention.objects.exists()


@act("change when a job expires")
def so_that_it_has_expired(writer: Writer) -> bool:
    pay.enqueue("Ada")
    change_metadata(expires=LONG_AGO)
    writer.work()
    return RAN == [] and FailedExecution.objects.get().exception_class.endswith("TaskExpired")


@act("change when a job expires")
def so_that_it_keeps_its_key(writer: Writer) -> bool:
    pay_once.enqueue("Ada")
    key = JobKey.read(Job.objects.get().metadata)
    change_metadata(unique=key and key._replace(keep=HOUR).stored)
    writer.work()
    return RAN == ["Ada"] and bool(pay_once.enqueue("Ada").duplicate)


@act("change when a job expires")
def so_that_it_waits_for_its_rate(writer: Writer) -> bool:
    pay.enqueue("Ada")
    pay.enqueue("Ben")
    change_metadata(rate=("theirs", 1, HOUR))
    claims = writer.driver.claim()
    return len(RatedStarts().not_yet(claims, 2, QueueDatabase("default"))) == 1


# --- states ---------------------------------------------------------------------------------------


@act("change when a job runs")
def by_the_time_when_it_is_due(writer: Writer) -> bool:
    pay.using(run_after=timezone.now() + timedelta(days=1)).enqueue("Ada")
    ScheduledExecution.objects.update(due_at=LONG_AGO)
    writer.driver.dispatch()
    writer.work()
    return RAN == ["Ada"]


@act("delete or discard jobs")
def by_deleting_their_rows(writer: Writer) -> bool:
    pay.enqueue("Ada")
    Job.objects.all().delete()
    writer.work()
    return RAN == []


@act("delete or discard jobs")
def by_pausing_a_queue(writer: Writer) -> bool:
    pay.enqueue("Ada")
    Pause.objects.create(queue_name="default", created_at=timezone.now())
    writer.work()
    return RAN == []


@act("delete or discard jobs")
def by_disabling_a_recurring_task(writer: Writer) -> bool:
    schedule_payment()
    RecurringTask.objects.update(enabled=False)
    plan = Plan("default")
    plan.begin()
    plan.pass_by(MINUTE)
    return plan.slots("pay") == []


@act("mark a job as finished or failed")
def as_finished(writer: Writer) -> bool:
    result = pay.enqueue("Ada")
    ReadyExecution.objects.all().delete()
    Job.objects.update(finished_at=timezone.now())
    writer.driver.finish(result)
    return RAN == [] and result.status.name == "SUCCESSFUL"


@act("mark a job as finished or failed")
def as_failed(writer: Writer) -> bool:
    result = writer.driver.finish(pay.enqueue("Ada"))
    FailedExecution.objects.create(job_id=int(result.id), created_at=timezone.now())
    Job.objects.update(errors='[["builtins.KeyError", "Eve"]]')
    result.refresh()
    [error] = result.errors
    return result.status.name == "FAILED" and error.traceback == EVE


# --- the page -------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("sign", [False, True], ids=["plain", "signed"])
@pytest.mark.parametrize(("row", "act"), ACTS, ids=[each.__name__ for _, each in ACTS])
def test_a_writer_can_do_what_the_page_says(row: str, act: Act, sign: bool, settings: Any) -> None:
    settings.TASKS = tasks("default", backoff=0, payload={"sign": sign})
    [promised] = [cells[sign] for text, cells in promises().items() if text.startswith(row)]
    if promised.startswith("yes"):
        assert act(Writer())
        return
    assert promised.startswith("no")
    with pytest.raises(REFUSALS) as refused:
        act(Writer())
    assert not {EVE, "told"} & {str(each) for each in RAN}
    named = re.findall(r"`(\w+Error)`", promised)
    assert not named or refused.typename in named


def test_each_row_of_the_page_has_an_act() -> None:
    beginnings = tuple(row for row, _ in ACTS)
    assert [text for text in promises() if not text.startswith(beginnings)] == []
