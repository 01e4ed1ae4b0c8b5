"""Rate limits in real processes, some of which are killed: by the log of what has started when."""

from __future__ import annotations

import time
from itertools import accumulate

import pytest

from .checker import Attempt
from .conftest import EVERYWHERE, MakeProject
from .harness import SCALE, Project
from .scenarios import durations, freeze, queue, stop_all, thaw
from .test_delivery import Troubles
from .waiting import wait_for

MODULE = ["tests.faultapp.rates"]
#: Those of ``rates.work``.
TO, BURST, PER = 100, 20, 1_000_000_000
#: ``make soak`` has 5,000.
JOBS = max(300, round(600 + 1100 * (SCALE - 1)))
#: The share of the rate that is reached. A few jobs say little of it.
LEAST = 0.95 if JOBS >= 5000 else 0.7


def starts_of(project: Project) -> list[int]:
    return [attempt.started_at for attempt in project.attempts()]


def most_at_once(attempts: list[Attempt]) -> int:
    """Return the most attempts that ran at once."""
    ends = [each.ended_at or each.started_at for each in attempts]
    events = sorted([*((each.started_at, 1) for each in attempts), *((end, -1) for end in ends)])
    return max(accumulate(change for _, change in events))


def fullest(starts: list[int], per: int = PER) -> int:
    """Return the most starts in any window, whose ends are part of it."""
    first = most = 0
    for last, instant in enumerate(starts):
        while instant - starts[first] > per:
            first += 1
        most = max(most, last - first + 1)
    return most


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
def test_no_second_has_more_starts_than_it_may(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    settings = queue(processes=4, threads=3, task_modules=MODULE)
    project = make_project(settings, **where)
    supervisors = [project.start() for _ in range(2)]
    for supervisor in supervisors:
        supervisor.wait_ready(4)

    def more() -> None:
        project.enqueue("rates:work", *durations(JOBS, 0.02))

    more()
    troubles = Troubles(project, *supervisors, seed=11, pause=1.0)
    troubles.make_until_done(60 + JOBS / 20, kills=3, more=more)
    stop_all(project)
    starts = starts_of(project)
    # Of those that were there from the start. The burst comes at once, before time has passed.
    rate = (JOBS - BURST) / (starts[JOBS - 1] - starts[0]) * PER
    claims = [row.token >> 32 for row in project.snapshot().jobs.values()]
    print(
        f"\n{len(claims)} jobs, {len(starts)} starts, {troubles.killed} kills, {fullest(starts)} "
        f"in the fullest second, {rate:.1f} a second, {sum(claims) / len(claims):.1f} claims each"
    )
    assert {row.states for row in project.snapshot().jobs.values()} == {("finished",)}
    assert troubles.killed >= 3
    assert fullest(starts) <= TO + BURST
    assert rate >= LEAST * TO


@pytest.mark.parametrize(
    ("name", "executor"),
    [
        ("work", "processes"),
        ("work_in_a_coroutine", "threads"),
        pytest.param("work", "threads", marks=pytest.mark.thorough),
        pytest.param("work_in_a_coroutine", "processes", marks=pytest.mark.thorough),
    ],
)
def test_the_rate_holds_for_each_kind_of_task_and_executor(
    make_project: MakeProject, name: str, executor: str
) -> None:
    settings = queue(processes=2, threads=3, task_modules=MODULE)
    settings["workers"][0]["executor"] = executor
    project = make_project(settings)
    project.start().wait_ready(2)
    ids = project.enqueue(f"rates:{name}", *durations(250, 0.005))
    project.wait_done()
    stop_all(project)
    starts = starts_of(project)
    assert len(starts) == len(ids)
    assert fullest(starts) <= TO + BURST
    assert starts[-1] - starts[0] >= (len(ids) - BURST - 2) / TO * PER


@pytest.mark.thorough
def test_a_group_shares_its_rate_among_retries_transactions_and_concurrency_limits(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=2, threads=3, task_modules=MODULE))
    project.start().wait_ready(2)
    for _ in range(4):
        project.enqueue("rates:fail_once", *[[0.0]] * 2)
        project.enqueue("rates:work_with_few", *[[0.05]] * 3)
        project.enqueue("rates:insert", [])
    project.enqueue("rates:work_with_few", *[[0.05]] * 3, delay=0.5)
    project.wait_done()
    stop_all(project)
    starts = starts_of(project)
    assert {row.states for row in project.snapshot().jobs.values()} == {("finished",)}
    assert len(starts) == 4 * (2 * 2 + 3 + 1) + 3
    assert fullest(starts) <= 10 + 5
    few = {row for (row,) in project.query(
        "SELECT id FROM steady_queue_jobs WHERE concurrency_key IS NOT NULL"
    )}  # fmt: skip
    assert most_at_once([each for each in project.attempts() if each.job_id in few]) <= 2


@pytest.mark.parametrize("where", EVERYWHERE)
def test_jobs_that_never_start_use_up_no_start(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(queue(task_modules=MODULE), **where)
    [expired] = project.enqueue("rates:work_slowly", periods={"expires": 0.01})
    [cancelled] = project.enqueue("rates:work_slowly", delay=0.5)
    wait_for(lambda: time.sleep(0.05) is None, 1, "the expiry")
    assert project.client.call("cancel", ids=[cancelled])[0][1]
    supervisor = project.start()
    supervisor.wait_ready(2)
    wait_for(lambda: project.state_of(expired) == "failed", 20, "the end of the job")
    assert project.query("SELECT count(*) FROM steady_queue_rates") == [(0,)]
    [first] = project.enqueue("rates:work_slowly")
    project.wait_started(first)
    [second] = project.enqueue("rates:work_slowly")
    wait_for(lambda: project.state_of(second) == "scheduled", 20, "the slot of the second job")
    stop_all(project)
    assert starts_of(project) == [project.attempts_at(first)[0].started_at]


@pytest.mark.thorough
def test_a_worker_that_was_frozen_asks_again(make_project: MakeProject) -> None:
    """What it may start ends with the moment, whatever it holds."""
    settings = queue(processes=1, threads=1, task_modules=MODULE)
    project = make_project(settings)
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    project.enqueue("rates:work", *durations(300, 0.002))
    for _ in range(5):
        freeze(project, supervisor, worker)
        time.sleep(0.4)
        thaw(supervisor, worker)
        time.sleep(0.1)
    project.wait_done()
    stop_all(project)
    starts = starts_of(project)
    assert len(starts) == 300
    assert fullest(starts) <= TO + BURST


@pytest.mark.parametrize("where", EVERYWHERE)
def test_jobs_do_not_wait_for_those_that_were_cancelled(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(queue(processes=1, task_modules=MODULE), **where)
    project.start().wait_ready(1)
    ids = project.enqueue("rates:work_seldom", *[[0.0]] * 60)
    wait_for(
        lambda: all(project.state_of(job_id) == "scheduled" for job_id in ids[-40:]),
        20,
        "the slots of the jobs",
    )
    assert project.client.call("cancel", ids=ids[15:-2])[0][1]
    [second] = project.enqueue("rates:work_seldom", [0.0])
    project.client.call("cancel", ids=ids[3:15])
    # They have had slots in about two minutes.
    wait_for(lambda: project.state_of(second) == "finished", 45, "the end of the last job")
    stop_all(project)
    order = [each.job_id for each in sorted(project.attempts(), key=lambda each: each.started_at)]
    assert [job_id for job_id in order if job_id >= ids[15]] == [*ids[-2:], second]
    assert fullest(starts_of(project), 2 * PER) == 1


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_job_behind_many_that_may_not_start_is_claimed_in_few_turns(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    worker = queue(processes=1, threads=1, task_modules=MODULE)
    worker["workers"][0] |= {"prefetch": 0, "coroutines": 1}
    project = make_project(worker, **where)
    project.enqueue("rates:work_slowly", *[[0.0]] * 1500)
    [plain] = project.enqueue("work", [0.0])
    began = time.monotonic()
    project.start().wait_ready(1)
    wait_for(lambda: project.state_of(plain) == "finished", 60, "the end of the plain job")
    print(f"\n{time.monotonic() - began:.1f} s")
    stop_all(project)
    # What is stored in one turn has the same time.
    [(jobs, turns)] = project.query(
        "SELECT count(*), count(DISTINCT created_at) FROM steady_queue_scheduled_executions"
    )
    assert jobs == 1499
    assert turns < 100
