"""Where code of the project runs in the queue's processes, and how a job ends that raises there."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A place where an error is raised, the task whose job goes there, and its end."""

    name: str
    task: str
    end: str


PLACES = [
    Place("function", "function", "failed"),
    Place("coroutine", "coroutine", "failed"),
    Place("middleware", "function", "failed"),
    Place("middleware of coroutines", "coroutine", "failed"),
    Place("back-off", "fail_twice", "failed"),
    Place("text of an error", "fail_untold", "failed"),
    # What follows an outcome does not change it.
    Place("key of a callback", "with_limited_callback", "finished"),
    Place("unique key of a callback", "with_unique_callback", "finished"),
    Place("receiver of task_started", "function", "finished"),
    Place("receiver of task_finished", "function", "finished"),
    Place("receiver of task_retried", "fail_twice", "failed"),
    Place("receiver of jobs_claimed", "function", "finished"),
    Place("receiver of jobs_settled", "function", "finished"),
    Place("receiver of process_polled", "function", "finished"),
    Place("receiver of process_beat", "function", "finished"),
    Place("error reporter", "fail", "failed"),
]
