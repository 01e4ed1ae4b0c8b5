"""Sessions that an administrator ends cost no job and repeat none."""

from __future__ import annotations

import random
import time

from .plant import Plant
from .scenarios import verdict

JOBS = 600


def test_sessions_are_ended_at_random_under_load(plant: Plant) -> None:
    """Those of workers, dispatcher and supervisor, and of a process that goes on enqueuing."""
    source = random.Random(7)
    project = plant.project
    project.enqueue("work", *[[0.01]] * JOBS)
    client = project.new_client()
    ended = 0
    try:
        client.begin("enqueue_stubbornly", count=JOBS, pause=0.003)
        while project.unfinished() > JOBS // 4:
            if sessions := plant.server.sessions():
                plant.server.end_sessions(source.choice(sessions))
                ended += 1
            time.sleep(0.03)
        enqueued = client.finish()
    finally:
        client.close()
    project.enqueued += enqueued["ids"]
    project.wait_done()
    # An enqueue whose answer was lost may have taken place.
    unknown = set(project.snapshot().jobs) - set(project.enqueued)
    assert len(unknown) <= len(enqueued["errors"])
    project.enqueued += unknown
    assert verdict(project) == [], project.logs()
    assert len(project.attempts()) == len(project.enqueued)
    assert set(plant.supervisor.children()) == plant.family, project.logs()
    print(f"\n{ended} sessions ended, {len(enqueued['errors'])} enqueues failed")
    plant.require_few_words(2 * ended)
