"""``processes``: supervisors, and what they have started."""

from __future__ import annotations

from typing import Any

from ..listings.processes import ListedProcess, listed_processes
from ..listings.wording import duration, moment
from .context import Context
from .databases import described, headings
from .exit_codes import DONE
from .formats import instant, seconds
from .subcommand import Subcommand
from .table import tables

HEADINGS = ("process", "state", "pid", "host", "serves", "jobs", "heartbeat", "started")


class Processes(Subcommand):
    """The registered processes, as a tree."""

    name = "processes"
    help = "list supervisors and what they have started, with their heartbeats"

    def run(self, context: Context) -> int:
        databases = context.databases.to_read()
        found = {using: listed_processes(using) for using in databases}
        data = [
            {**described(using), "processes": [_as_json(each) for each in processes]}
            for using, processes in found.items()
        ]
        rows = {using: [_as_row(each) for each in processes] for using, processes in found.items()}
        lines = tables(headings(databases), HEADINGS, rows, "No process is registered.")
        context.show({"databases": data}, lines)
        return DONE


def _as_row(process: ListedProcess) -> list[object]:
    row, serves = process.row, ""
    if process.queues:
        serves = f"{', '.join(process.queues)}; {process.known.get('threads')} threads"
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
