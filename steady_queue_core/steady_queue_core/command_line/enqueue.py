"""``enqueue``: one call of a task."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from ..compat import (
    InvalidTask,
    InvalidTaskBackend,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
)
from ..configuration import Configuration
from ..configuration.errors import suggest
from ..processes.supervisor.launch import import_tasks
from ..tasks.registry import known_task, registered_tasks, runs_ours
from .context import Context
from .databases import require_usable
from .exit_codes import DONE, FAILED, NOT_FOUND, WRONG_USAGE, Refusal
from .formats import duration_option
from .show import plain
from .subcommand import Subcommand

DEFAULT_WAIT = timedelta(minutes=1)


class Enqueue(Subcommand):
    """A task of the project, with arguments in JSON."""

    name = "enqueue"
    help = "enqueue a task of the project, and wait for its result if wanted"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="PATH", help="path of the task: shop.tasks.send")
        # Django takes "args" away from the options.
        parser.add_argument(
            "--args", dest="positional", type=_list, default=[], metavar="JSON", help="a JSON list"
        )
        parser.add_argument(
            "--kwargs", dest="named", type=_object, default={}, metavar="JSON", help="an object"
        )
        parser.add_argument("--queue", help="instead of the queue of the task")
        parser.add_argument("--priority", type=int, help="from -100 to 100; larger runs first")
        parser.add_argument(
            "--in", dest="delay", type=duration_option, metavar="TIME", help="run it so much later"
        )
        parser.add_argument(
            "--wait",
            nargs="?",
            type=duration_option,
            const=DEFAULT_WAIT,
            metavar="TIME",
            help="wait for its end, at most so long (60s), and print its result",
        )

    def run(self, context: Context) -> int:
        task = _configured(_find(context.options["path"]), context.options)
        for using in _databases(task):
            require_usable(using)
        try:
            result = task.enqueue(*context.options["positional"], **context.options["named"])
        except (TypeError, ValueError, InvalidTask) as error:
            raise Refusal(str(error), WRONG_USAGE) from error
        enqueued = _not_enqueued(result)
        data = {"task": task.module_path, "job": _id(result), "enqueued": not enqueued}
        if context.options["wait"] is None or _id(result) is None:
            context.show(data, [enqueued or f"Enqueued job {result.id}."])
            return DONE
        return _wait(context, result, data)


def _wait(context: Context, result: Any, data: Mapping[str, Any]) -> int:
    context.note(f"Waiting for job {result.id}.")
    try:
        result.wait(context.options["wait"])
    except TimeoutError as error:
        context.show({**data, "status": str(result.status.value)}, problems=[str(error)])
        return FAILED
    except TaskResultDoesNotExist:
        problem = f"Job {result.id} is gone: it has ended and is not kept, or was deleted."
        context.show({**data, "status": None}, problems=[problem])
        return FAILED
    status = {**data, "status": str(result.status.value)}
    if result.status == TaskResultStatus.SUCCESSFUL:
        value = result.return_value
        context.show({**status, "result": plain(value)}, [repr(value)])
        return DONE
    reason = result.errors[-1].exception_class_path if result.errors else "no error was stored"
    context.show(status, problems=[f"Job {result.id} has failed: {reason}"])
    return FAILED


def _find(path: str) -> Any:
    import_tasks(Configuration.load())
    task = known_task(path)
    if task is None:
        known = [each.module_path for each in registered_tasks()]
        raise Refusal(f"There is no task {path!r}; {suggest(path, known)}", NOT_FOUND)
    return task


def _configured(task: Any, options: Mapping[str, Any]) -> Any:
    """Return the task with the options that are given."""
    given = {
        "queue_name": options["queue"],
        "priority": options["priority"],
        "run_after": options["delay"],
        "backend": options.get("backend"),
    }
    changes = {name: value for name, value in given.items() if value is not None}
    try:
        configured = task.using(**changes) if changes else task
        is_ours = runs_ours(configured.get_backend())
    except (TypeError, ValueError, InvalidTask, InvalidTaskBackend) as error:
        raise Refusal(str(error), WRONG_USAGE) from error
    if not is_ours:
        raise Refusal(f"{configured.backend!r} is no Steady Queue backend in TASKS.", WRONG_USAGE)
    return configured


def _not_enqueued(result: TaskResult) -> str:
    """Return why no job was stored; empty: one was."""
    if getattr(result, "discarded", False):
        return "Not enqueued: its concurrency limit is reached."
    if getattr(result, "duplicate", False):
        return f"Not enqueued: job {result.id} has its unique key."
    return ""


def _id(result: TaskResult) -> int | str | None:
    """Return the id as JSON has it: a number, or a text that names a shard."""
    return int(result.id) if str(result.id).isdigit() else result.id or None


def _databases(task: Any) -> list[str]:
    """Return the databases that a call may be stored in."""
    backend = task.get_backend()
    return [each.database for each in getattr(backend, "members", [backend])]


def _list(text: str) -> list[Any]:
    found = _json(text)
    if not isinstance(found, list):
        raise ArgumentTypeError(f'{text!r} is not a JSON list, such as [1, "two"]')
    return found


def _object(text: str) -> dict[str, Any]:
    found = _json(text)
    if not isinstance(found, dict):
        raise ArgumentTypeError(f'{text!r} is not a JSON object, such as {{"to": 1}}')
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArgumentTypeError(f"{text!r} is not JSON: {error}") from error
