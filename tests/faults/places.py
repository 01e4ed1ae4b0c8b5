"""Where code of the project runs in the queue's processes, and how a job ends that raises there."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A place where an error is raised, the task whose job goes there, and its end."""

    name: str
    task: str
    end: str
    #: The executor whose jobs go there; empty: each.
    executor: str = ""


PLACES = [
    Place("function", "function", "failed"),
    Place("coroutine", "coroutine", "failed"),
    Place("middleware", "function", "failed"),
    Place("middleware of coroutines", "coroutine", "failed"),
    Place("back-off", "fail_twice", "failed"),
    Place("text of an error", "fail_untold", "failed"),
    Place("opening of a call", "function", "failed"),
    Place("opening of a call", "coroutine", "failed"),
    Place("sealing of a result", "function", "failed"),
    Place("sealing of a result", "coroutine", "failed"),
    # What follows an outcome does not change it.
    Place("opening of a result", "function", "finished", "processes"),
    Place("key of a callback", "with_limited_callback", "finished"),
    Place("unique key of a callback", "with_unique_callback", "finished"),
    Place("headers of a callback", "with_limited_callback", "finished"),
    Place("receiver of task_started", "function", "finished"),
    Place("receiver of task_finished", "function", "finished"),
    Place("receiver of task_retried", "fail_twice", "failed"),
    Place("receiver of jobs_claimed", "function", "finished"),
    Place("receiver of jobs_settled", "function", "finished"),
    Place("receiver of process_polled", "function", "finished"),
    Place("receiver of process_beat", "function", "finished"),
    Place("hook of internal errors", "with_hopeless_callback", "finished"),
    Place("error reporter", "fail", "failed"),
]

#: Hooks of processes, which all run when a project is started and stopped.
HOOKS = [
    *(f"on_{kind}{event}"
      for kind in ("", "worker_", "dispatcher_", "scheduler_")
      for event in ("start", "stop", "exit")),
    "on_task_process_start", "on_task_process_exit",
]  # fmt: skip
