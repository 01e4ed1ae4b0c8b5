"""An overview is made by a few queries, however much there is."""

from __future__ import annotations

from typing import Any

from django.db import connections
from django.test.utils import CaptureQueriesContext

from steady_queue_core.models import Process, Queue, RecurringExecution, RecurringTask
from steady_queue_core.overview import WINDOWS, Overview, Scope

from ..models.everywhere import on_every_database
from .planting import Garden

#: Of the queue's database, and without the recurring tasks; and of a closer look.
MOST, MOST_OF_FRAGMENT, MOST_OF_CLOSER = 8, 6, 75


def queries(using: str, **given: Any) -> int:
    with CaptureQueriesContext(connections[using]) as captured:
        Overview.of(Scope(using), **given)
    return len(captured)


@on_every_database
def test_the_number_of_queries_is_the_same_whatever_there_is(using: str, garden: Garden) -> None:
    assert queries(using) == MOST - 1
    assert queries(using, with_schedules=False) == MOST_OF_FRAGMENT
    present = garden.present(using)
    for number in range(60):
        garden.ready(1, f"q{number}")
        garden.count(number, f"q{number}", f"t{number}", finished=1)
        Queue(f"q{number % 3}", using).pause()
        garden.start("worker", f"worker-{number + 2}", queues=["q*"], threads=3)
    for number in range(20):
        garden.rows(RecurringTask).create(
            key=f"daily{number}", task_path="tests.app.tasks.noop", schedule="0 6 * * *",
            timezone="UTC", arguments='{"args":[],"kwargs":{}}', backend_name="default",
            queue_name="default", created_at=present, updated_at=present,
        )  # fmt: skip
        [job] = garden.failed(1) if number % 2 else garden.finished(1)
        garden.rows(RecurringExecution).create(
            task_key=f"daily{number}", run_at=present, job_id=job, created_at=present
        )
    garden.claim(20)
    queries(using, looks_closer=True)  # Indexes are looked at once in a while.
    assert queries(using, looks_closer=True) <= MOST + MOST_OF_CLOSER
    assert queries(using) == MOST
    assert queries(using, with_schedules=False) == MOST_OF_FRAGMENT
    for window in WINDOWS.values():
        seen = garden.look(window=window)
        assert len(seen.queues) == 12
        assert seen.queues_left == 49
        assert len(seen.longest) == len(seen.schedules or ()) == 5
    last = [each.last for each in seen.schedules or ()]
    assert {each.ending for each in last} == {"failed", "finished"}
    assert None not in [each.at for each in last]


@on_every_database
def test_a_queue_without_processes_knows_the_time_by_no_query_more(
    using: str, garden: Garden
) -> None:
    with_processes = queries(using)
    Process.objects.using(using).delete()
    before = garden.present(using)
    assert queries(using) == with_processes
    assert before <= garden.look().moment.present <= garden.present(using)
