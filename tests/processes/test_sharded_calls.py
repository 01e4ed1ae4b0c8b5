"""Calls of a sharded backend run once each, in their shard, whatever is killed: real processes."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from steady_queue_core.sharding.routing import shard_of

from .conftest import EVERYWHERE, MakeProject
from .scenarios import queue, stop_all
from .test_shards import FIRST_ID, WEST, Shards
from .waiting import wait_for

CUSTOMERS = """
TASKS["customers"] = {
    "BACKEND": "steady_queue_core.sharding.ShardedBackend",
    "QUEUES": [],
    "OPTIONS": {"shards": ["default", "west"], "key": "customer_id"},
}
"""
NUMBER = 120


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
def test_each_call_has_one_end_in_its_shard_under_kills(
    make_project: MakeProject, template: Path, where: dict[str, str]
) -> None:
    settings = queue(processes=1, threads=3, task_modules=["tests.faultapp.sharded"])
    project = make_project(settings, extra=WEST + CUSTOMERS, **where)
    shards = Shards(project, template)
    supervisor = shards.start()
    project.client.begin("serve_all", customers=NUMBER, seconds=0.05)
    for workers in (supervisor.workers, lambda: shards.workers(supervisor)):
        [victim] = wait_for(workers, 20, "a worker")
        wait_for(
            lambda pid=victim: [each for each in project.attempts() if each.pid == pid],
            20,
            "starts",
        )
        supervisor.send(signal.SIGKILL, victim)
    results = project.client.finish()
    wait_for(lambda: project.unfinished() == shards.unfinished() == 0, 40, "the callbacks")
    stop_all(project)

    places = [shard_of(str(number), ["default", "west"]) for number in range(NUMBER)]
    assert min(places.count(shard) for shard in ("default", "west")) > NUMBER / 4
    for number, (result_id, customer, shard, job_id) in enumerate(results):
        assert (customer, shard) == (number, places[number])
        assert result_id == f"{shard}:{job_id}"
        assert (int(job_id) > FIRST_ID) is (shard == "west")
    for shard, query in {"default": project.query, "west": shards.west.query}.items():
        rows = query(
            "SELECT return_value FROM steady_queue_jobs WHERE task_path = ?",
            "tests.faultapp.sharded.noted",
        )
        wanted = sorted(f'["{shard}", "{row[0]}"]' for row in results if row[2] == shard)
        assert sorted(value.replace('","', '", "') for (value,) in rows) == wanted
