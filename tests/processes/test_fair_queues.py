"""Fair queues among real processes, which are killed: judged by the effect log."""

from __future__ import annotations

import random
import signal
import time

import pytest

from .conftest import MakeProject
from .scenarios import queue, stop_all, verdict
from .test_limits import on_every_database

FAIR = 'TASKS["default"]["OPTIONS"] = {"fair_queues": ["fair"]}'
#: How many jobs workers may have claimed ahead, and how far a window may miss its share therefore.
AHEAD = 24


@pytest.mark.slow
@on_every_database
def test_keys_have_their_shares_though_workers_are_killed(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(queue(processes=2, threads=1), extra=FAIR, **where)
    project.client.call("set_weight", queue="fair", key="heavy", weight=2)
    keys: dict[int, str] = {}

    def enqueue(key: str, count: int) -> None:
        calls = [[0.005]] * count
        ids = project.enqueue("work_again", *calls, queue="fair", fair_key=key)
        keys.update(dict.fromkeys(ids, key))

    enqueue("light", 400)
    enqueue("heavy", 400)
    supervisor = project.start()
    supervisor.wait_ready(2)
    chance, killed, newcomer_at = random.Random(7), 0, 0
    deadline = time.monotonic() + 90
    while project.unfinished() or killed < 2:
        if not newcomer_at and len(project.attempts()) >= 150:
            enqueue("newcomer", 1)
            newcomer_at = len(project.attempts())
        if not project.unfinished():  # A slow machine has looked too late.
            enqueue("light", 100)
            enqueue("heavy", 100)
        worker = chance.choice(supervisor.wait_ready(1))
        killed += supervisor.send(signal.SIGKILL, worker) is not None
        next_kill = time.monotonic() + 0.5
        while time.monotonic() < next_kill and project.unfinished():
            time.sleep(0.02)
        assert time.monotonic() < deadline, project.logs()
    stop_all(project)
    assert verdict(project, threads=1) == []

    first: dict[int, int] = {}
    for attempt in sorted(project.attempts(), key=lambda each: each.started_at):
        first.setdefault(attempt.job_id, attempt.started_at)
    order = [keys[job_id] for job_id in first]
    assert newcomer_at
    assert order.index("newcomer") <= newcomer_at + AHEAD
    # While both have jobs: of three, two are heavy.
    for start in range(0, 400, 30):
        heavy = order[start : start + 150].count("heavy")
        assert abs(heavy - 100) <= AHEAD / 2, (start, heavy)
    # What was killed took new turns: these may be more than the jobs.
    turns = dict(
        project.query(
            'SELECT "key", turn FROM steady_queue_turns'.replace(
                '"', "`" if where.get("on") in ("mysql", "mariadb") else '"'
            )
        )
    )
    assert turns.keys() <= {"light", "heavy", "newcomer"}
