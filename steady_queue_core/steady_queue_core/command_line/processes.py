"""``processes``: supervisors and what they have started, and processes that have ended."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from ..listings.process_ends import ListedEnd, listed_ends
from ..listings.processes import ListedProcess, listed_processes
from ..listings.wording import clean, duration, moment, name
from .context import Context
from .databases import described, headings
from .exit_codes import DONE
from .formats import instant, positive_option, seconds
from .subcommand import Subcommand
from .table import tables

HEADINGS = ("process", "state", "pid", "host", "serves", "jobs", "heartbeat", "started")
#: Characters of a queue list.
MOST_SHOWN = 1_000
ENDED = ("ended", "process", "pid", "host", "why", "held", "what became of the jobs", "jobs")


class Processes(Subcommand):
    """The registered processes, as a tree, or those that were killed or went silent."""

    name = "processes"
    help = "list supervisors and what they have started, with their heartbeats"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--ended",
            action="store_true",
            help="those that were killed, went silent or were replaced, the latest first",
        )
        parser.add_argument(
            "--limit", type=positive_option, default=50, help="most ended ones that are listed (50)"
        )

    def run(self, context: Context) -> int:
        databases = context.databases.to_read()
        if context.options["ended"]:
            return _show_ended(context, databases, context.options["limit"])
        found = {using: listed_processes(using) for using in databases}
        data = [
            {**described(using), "processes": [_as_json(each) for each in processes]}
            for using, processes in found.items()
        ]
        rows = {using: [_as_row(each) for each in processes] for using, processes in found.items()}
        lines = tables(headings(databases), HEADINGS, rows, "No process is registered.")
        context.show({"databases": data}, lines)
        return DONE


def _show_ended(context: Context, databases: list[str], limit: int) -> int:
    found = {using: listed_ends(using, limit) for using in databases}
    data = [
        {**described(using), "ended": [_end_as_json(each) for each in ends]}
        for using, ends in found.items()
    ]
    rows = {using: [_end_as_row(each) for each in ends] for using, ends in found.items()}
    empty = "No process has ended but by itself."
    context.show({"databases": data}, tables(headings(databases), ENDED, rows, empty))
    return DONE


def _end_as_row(end: ListedEnd) -> list[object]:
    row = end.row
    lost = f"{row.lost} lost" if row.lost else ""
    return [
        moment(row.ended_at),
        name(row.name),
        row.pid,
        name(row.hostname),
        name(end.reason),
        row.held,
        ", ".join(filter(None, (lost, end.fate))),
        name(", ".join(f"#{each.job_id}" for each in end.jobs)),
    ]


def _end_as_json(end: ListedEnd) -> dict[str, Any]:
    row = end.row
    return {
        "process_id": row.process_id,
        "name": row.name,
        "kind": row.kind,
        "pid": row.pid,
        "host": row.hostname,
        "supervisor_id": row.supervisor_id,
        "queues": end.queues,
        "reason": row.reason,
        "why": end.why,
        "exit_code": end.details.get("exit_code"),
        "held": row.held,
        "lost": row.lost,
        "endings": end.endings,
        "jobs": [
            {"id": job.job_id, "task": job.task, "ending": job.ending, "lost": job.lost}
            for job in end.jobs
        ],
        "started_at": instant(row.started_at),
        "heartbeat_at": instant(row.last_heartbeat_at),
        "ended_at": instant(row.ended_at),
    }


def _as_row(process: ListedProcess) -> list[object]:
    row, serves = process.row, clean(process.serves_text, MOST_SHOWN)
    return [
        f"{'└ ' if process.nested else ''}{row.name}",
        process.state,
        row.pid,
        row.hostname,
        serves,
        process.running,
        "" if process.silence is None else f"{duration(process.silence)} ago",
        moment(row.created_at),
    ]


def _as_json(process: ListedProcess) -> dict[str, Any]:
    row = process.row
    return {
        "id": row.pk,
        "name": row.name,
        "kind": row.kind,
        "state": process.state,
        "pid": row.pid,
        "host": row.hostname,
        "supervisor_id": row.supervisor_id,
        "queues": process.queues,
        "threads": process.known.get("threads"),
        "running": process.running,
        "heartbeat_age_s": seconds(process.silence),
        "started_at": instant(row.created_at),
    }
