"""``schedules``: recurring tasks, listed, run, switched off and on."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from typing import Any

from ..dialects import is_storable
from ..errors import SteadyQueueError
from ..listings.recurring import ListedSchedule, listed_schedules
from ..listings.wording import moment
from ..models import RecurringTask
from ..printable import printable
from .context import Context
from .databases import described, headings
from .exit_codes import DONE, FAILED, NOT_FOUND, WRONG_USAGE, Refusal
from .formats import instant, positive_option
from .subcommand import Subcommand
from .table import tables

HEADINGS = ("key", "task", "schedule", "zone", "state", "next run", "last run")


class Schedules(Subcommand):
    """Recurring tasks of the code, and those added at run time."""

    name = "schedules"
    help = "list recurring tasks, run one, or switch it off and on"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "action",
            nargs="?",
            default="list",
            choices=("list", "run", "enable", "disable", "next"),
            help="list (without one); run: enqueue once, apart from the schedule; next: next runs",
        )
        parser.add_argument("keys", nargs="*", metavar="KEY", help="keys of recurring tasks")
        parser.add_argument(
            "-n", type=positive_option, default=5, dest="runs", help="how many runs next shows (5)"
        )

    def run(self, context: Context) -> int:
        action, keys = context.options["action"], context.options["keys"]
        if action == "list":
            return _show(context, keys, next_runs=1)
        if not keys:
            raise Refusal(f"Say which: schedules {action} KEY", WRONG_USAGE)
        if action == "next":
            return _show(context, keys, next_runs=context.options["runs"])
        return _change(context, action, keys)


def _show(context: Context, keys: list[str], next_runs: int) -> int:
    databases = context.databases.to_read()
    found = {using: _listed(using, keys, next_runs) for using in databases}
    known = {each.key for schedules in found.values() for each in schedules}
    missing = [key for key in keys if key not in known]
    data = [
        {**described(using), "schedules": [_as_json(each) for each in schedules]}
        for using, schedules in found.items()
    ]
    rows = {using: [_as_row(each) for each in schedules] for using, schedules in found.items()}
    lines = tables(headings(databases), HEADINGS, rows, "There is no recurring task.")
    if context.options["action"] == "next":
        lines = _runs(found)
    context.show({"databases": data}, lines, [_unknown(key) for key in missing])
    return NOT_FOUND if missing else DONE


def _listed(using: str, keys: list[str], next_runs: int) -> list[ListedSchedule]:
    if not keys:
        return listed_schedules(using, next_runs)
    return [
        each
        for key in dict.fromkeys(keys)
        if is_storable(key)
        for each in listed_schedules(using, next_runs, key)
    ]


def _runs(found: dict[str, list[ListedSchedule]]) -> Iterator[str]:
    for schedules in found.values():
        for each in schedules:
            runs = each.outlook.next_runs
            yield f"{printable(each.key)}: {_why_none(each)}" if not runs else printable(each.key)
            yield from (f"  {moment(run)}" for run in runs)


def _why_none(schedule: ListedSchedule) -> str:
    return f"no run is due, it is {schedule.state}"


def _as_row(schedule: ListedSchedule) -> list[object]:
    row, runs = schedule.row, schedule.outlook.next_runs
    return [
        row.key,
        row.task_path,
        row.schedule,
        row.timezone,
        schedule.state,
        moment(runs[0]) if runs else "",
        moment(schedule.last_run),
    ]


def _as_json(schedule: ListedSchedule) -> dict[str, Any]:
    row = schedule.row
    return {
        "key": row.key,
        "task": row.task_path,
        "schedule": row.schedule,
        "timezone": row.timezone,
        "queue": row.queue_name,
        "priority": row.priority,
        "in_code": bool(row.static),
        "state": schedule.state,
        "next_runs": [instant(run) for run in schedule.outlook.next_runs],
        "last_run": instant(schedule.last_run),
    }


def _change(context: Context, action: str, keys: list[str]) -> int:
    using = context.databases.to_change()
    outcomes, missing, problems = [], [], []
    for key in dict.fromkeys(keys):
        row = _row(using, key)
        if row is None:
            missing.append(_unknown(key))
            continue
        try:
            outcomes.append((key, ACTIONS[action](row)))
        except SteadyQueueError as error:
            problems.append(str(error))
    data = {
        **described(using),
        "action": action,
        "schedules": [{"key": key, **outcome} for key, (outcome, _) in outcomes],
    }
    lines = [f"{printable(key)}: {words}" for key, (_, words) in outcomes]
    context.show(data, lines, [*missing, *problems])
    return NOT_FOUND if missing else FAILED if problems else DONE


def _row(using: str, key: str) -> RecurringTask | None:
    rows = RecurringTask.objects.using(using)
    return rows.filter(pk=key).first() if is_storable(key) else None


def _run(row: RecurringTask) -> tuple[dict[str, Any], str]:
    result = row.run_now()
    if getattr(result, "discarded", False):
        return {"job": None, "enqueued": False}, "not enqueued, its concurrency limit is reached"
    if getattr(result, "duplicate", False):
        words = f"not enqueued, job {result.id} has its unique key"
        return {"job": int(result.id), "enqueued": False}, words
    return {"job": int(result.id), "enqueued": True}, f"enqueued as job {result.id}"


def _enable(row: RecurringTask) -> tuple[dict[str, Any], str]:
    changed = row.enable(using=row._state.db)
    return {"changed": changed}, "enabled" if changed else "is enabled already"


def _disable(row: RecurringTask) -> tuple[dict[str, Any], str]:
    changed = row.disable(using=row._state.db)
    return {"changed": changed}, "disabled" if changed else "is disabled already"


ACTIONS: dict[str, Callable[[RecurringTask], tuple[dict[str, Any], str]]] = {
    "run": _run,
    "enable": _enable,
    "disable": _disable,
}


def _unknown(key: str) -> str:
    return f"There is no recurring task {key!r}."
