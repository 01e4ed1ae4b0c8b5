"""Sessions that an administrator ends cost no job and repeat none."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ..servers.breakable import BreakableServer
from .conftest import EACH_SERVER, MakeProject
from .plant import Plant
from .scenarios import queue, stop_all
from .waiting import wait_for

JOBS, ENQUEUERS = 1000, 2
#: Listeners that come back by themselves after a minute alone.
SLOW_LISTENERS = {
    "postgres": """
        from steady_queue_postgres import wakeup
        wakeup.FIRST_PAUSE = wakeup.LONGEST_PAUSE = 60.0
    """,
    "mysql": """
        from steady_queue_mysql import wakeup
        wakeup.RECONNECT_INTERVAL = 60.0
    """,
}
LISTENING = {
    True: "SELECT pid FROM pg_stat_activity WHERE datname = '{}' AND query LIKE 'LISTEN %'",
    False: "SELECT id FROM information_schema.processlist "
    "WHERE db = '{}' AND info LIKE '%AS steady_queue_wakeup'",
}


@pytest.mark.parametrize("alias", EACH_SERVER)
def test_a_listener_comes_back_with_the_next_connection(
    alias: str, breakable_servers: dict[str, BreakableServer], make_project: MakeProject
) -> None:
    """However long it would take to come back by itself."""
    server = breakable_servers[alias]
    slow = SLOW_LISTENERS["postgres" if server.is_postgres else "mysql"]
    project = make_project(queue(processes=2), extra=slow, at=server.address)
    database = project.storage.address.name
    listening = LISTENING[server.is_postgres].format(database)
    project.start().wait_ready(2)
    wait_for(lambda: len(server.ask(listening)) == 2, 20, "the listeners")
    before = server.ask(listening)
    server.end_sessions(*server.sessions(database))
    wait_for(
        lambda: len(server.ask(listening)) == 2 and not set(before) & set(server.ask(listening)),
        10, "other listeners",
    )  # fmt: skip
    stop_all(project)


def test_sessions_are_ended_at_random_under_load(plant: Plant) -> None:
    """Those of workers, dispatcher and supervisor, and of processes that enqueue."""
    source = random.Random(7)
    project, server = plant.project, plant.server
    clients = [project.new_client() for _ in range(ENQUEUERS)]
    share = {"count": JOBS // ENQUEUERS, "pause": 0.002}
    ended = 0
    try:
        with ThreadPoolExecutor(ENQUEUERS) as threads:
            enqueuing = [
                threads.submit(client.call, "enqueue_stubbornly", **share) for client in clients
            ]
            while not all(each.done() for each in enqueuing) or project.unfinished() > JOBS // 10:
                if sessions := server.sessions():
                    server.end_sessions(source.choice(sessions))
                    ended += 1
                time.sleep(0.05)
        enqueued = [each.result() for each in enqueuing]
    finally:
        for client in clients:
            client.close()
    errors = [error for each in enqueued for error in each["errors"]]
    project.enqueued += [job_id for each in enqueued for job_id in each["ids"]]
    # An enqueue whose answer was lost may have taken place.
    unknown = set(project.snapshot().jobs) - set(project.enqueued)
    assert len(unknown) <= len(errors)
    project.enqueued += unknown
    plant.require_all_done()
    assert ended > 10
    plant.require_few_words(3 * ended)
    print(f"\n{ended} sessions ended, {len(errors)} enqueues failed, {len(unknown)} stored even so")
