"""Enqueues jobs and reads their results in a process of the project.

Reads ``[function, argument]`` as JSON from standard input and writes what it returns.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import django


def enqueue(calls: list[Any]) -> list[int]:
    """Enqueue ``[task, args, kwargs]``, whether the call fits or not: it may have done so when it
    was stored. An argument ``"NOTE"`` is a row that is deleted then."""
    from steady_queue_core import backend

    from ..faultapp.models import Note
    from . import tasks

    backend.require_fit = lambda task, args, kwargs: None
    ids = []
    for name, args, kwargs in calls:
        note = Note.objects.create(text="here today")
        given = [note if each == "NOTE" else each for each in args]
        ids.append(int(getattr(tasks, name).enqueue(*given, **kwargs).id))
        note.delete()
    return ids


def results(ids: list[int]) -> list[Any]:
    """Return what the public interface tells of jobs."""
    from steady_queue_core.compat import task_backends

    told = []
    for each in ids:
        result = task_backends["default"].get_result(str(each))
        told.append(
            {
                "status": str(result.status),
                "attempts": result.attempts,
                "workers": result.worker_ids,
                "errors": [[e.exception_class_path, e.traceback] for e in result.errors],
                "value": repr(result._return_value),
            }
        )
    return told


def main() -> None:
    django.setup()
    name, argument = json.load(sys.stdin)
    json.dump({"enqueue": enqueue, "results": results}[name](argument), sys.stdout)


if __name__ == "__main__":
    main()
