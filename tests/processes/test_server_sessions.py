"""Sessions that an administrator ends cost no job and repeat none."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor

from .plant import Plant

JOBS, ENQUEUERS = 1000, 2


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
