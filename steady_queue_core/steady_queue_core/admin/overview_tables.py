"""The numbers and tables of the overview, as its templates show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils.html import format_html

from ..dialects import portable
from ..models import Job, Pause, Process, RecurringTask
from ..overview import Overview
from ..overview.busy import LongRun
from ..overview.causes import Cause
from ..overview.queues import QueueLine
from ..overview.schedules import NextRun
from ..overview.scope import LATELY
from ..overview.total import Total
from . import texts
from .charts_svg import spark_svg
from .overview_charts import clock_of, milliseconds, number
from .page_links import Links
from .table_html import Table, bad, hidden, link, named, titled

DASH = "-"
#: Characters of an error, and points of the line that tells when its jobs have failed.
MOST_OF_ERROR, SPARK_STEPS = 160, 30


def numbers(overview: Overview, links: Links) -> Iterator[dict[str, Any]]:
    """Yield what there is: label, number, address, and whether it is bad."""
    for state, count in overview.lengths.states.items():
        if state != "waiting" or count.number:
            yield {
                "label": "Failed now" if state == "failed" else state.capitalize(),
                "value": count.text,
                "url": links.to_list(Job, state=state),
                "is_bad": state == "failed" and count.number > 0,
            }
    silent = f", {overview.silent:,} silent" if overview.silent else ""
    yield {
        "label": "Processes",
        "value": f"{overview.live:,} live{silent}",
        "url": links.to_list(Process),
        "is_bad": bool(overview.silent),
    }
    yield {"label": f"Finished/min, {LATELY} min", "value": rate(overview.finished_rate)}
    yield {"label": f"Wait 95 %, {LATELY} min", "value": milliseconds(overview.slow_wait)}


def problems(overview: Overview, links: Links) -> Iterator[dict[str, Any]]:
    """Yield what is wrong."""
    remedy = ""
    for each in overview.problems:
        url, label = links.to_problem(each)
        finding = each.finding
        yield {
            "code": finding.code,
            "severity": finding.severity,
            "text": finding.text,
            # One that helps several problems is told once.
            "remedy": finding.remedy if finding.remedy != remedy else "",
            "url": url,
            "label": label,
        }
        remedy = finding.remedy


def queues(overview: Overview, links: Links) -> Table:
    """Return the table of queues."""
    failed = f"Failed in {overview.scope.window.label}"
    heads = (
        "Queue", "State", "Ready", "Oldest wait", "Running", "Blocked", failed, "In/min",
        "Out/min", "Last hour", "Empty in", hidden("Action"),
    )  # fmt: skip
    present = overview.moment.present
    # What was counted may have been retried or discarded: no address leads to an empty list.
    left = overview.causes.queues
    rows = [_queue(each, links, present, each.name in left) for each in overview.queues]
    return Table("sq-queues", heads, rows)


def _queue(line: QueueLine, links: Links, present: datetime, is_left: bool) -> Sequence[str]:
    listed, name, failed = line.listed, line.name, line.window.failed
    ready, wait, empty = listed.ready, listed.oldest_wait, line.time_to_empty
    return (
        link(links.to_page(Pause, name), named(name)),
        bad(_state(line, present), listed.is_unserved or listed.is_paused),
        link(links.to_jobs("ready", queue=name) if ready.number else "", ready.text),
        DASH if wait is None else texts.duration(wait),
        line.running.text,
        line.blocked.text,
        link(links.to_jobs("failed", queue=name) if failed and is_left else "", f"{failed:,}"),
        DASH if line.in_rate is None else rate(line.in_rate),
        rate(line.out_rate),
        _spark(line),
        DASH if empty is None else texts.duration(empty),
        _switch("resume" if listed.is_paused else "pause", name, links),
    )


def _switch(verb: str, name: str, links: Links) -> str:
    url = links.to_button(verb, name)
    if not url:
        return ""
    return format_html(
        '<button class="button" form="sq-act" formaction="{0}" aria-label="{1} {2}">{1}</button>',
        url, verb.capitalize(), texts.name(name),
    )  # fmt: skip


def _state(line: QueueLine, present: datetime) -> str:
    listed = line.listed
    if listed.is_paused:
        since = listed.paused_since
        words = f"paused for {texts.between(since, present)}" if since else "paused"
        return texts.dated(words, since)
    return "open" if listed.workers else "no worker"


def _spark(line: QueueLine) -> str:
    if not any(line.spark):
        return ""
    sums = [sum(line.spark[at : at + 3]) for at in range(0, len(line.spark), 3)]
    return spark_svg(sums, f"{sum(sums):,} ended in the last hour")


def tasks(overview: Overview, links: Links) -> Table:
    """Return the table of tasks."""
    heads = (
        "Task", "Runs", "Failed", "Retried", "Average", "95 %", "Longest", "Last failure",
    )  # fmt: skip
    length = overview.scope.window.length
    left = overview.causes.tasks
    rows = [_task(*each, links, length, each[0] in left) for each in overview.tasks]
    return Table("sq-tasks", heads, rows)


def _task(path: str, total: Total, links: Links, length: int, is_left: bool) -> Sequence[str]:
    failed = links.to_jobs("failed", task=path) if total.failed and path and is_left else ""
    return (
        link(links.here(task=path), texts.short_path(path)) if path else "other tasks",
        f"{total.attempts:,}",
        bad(link(failed, _share(total.failed_share)), total.failed > 0),
        _share(total.retried_share),
        milliseconds(total.run_mean),
        milliseconds(total.run(0.95)),
        milliseconds(total.run_max) if total.run_max else DASH,
        clock_of(total.last_failure, length) if total.last_failure else DASH,
    )


def longest(overview: Overview, links: Links) -> Table:
    """Return the table of the jobs that have run for longest."""
    heads = ("Job", "Task", "Queue", "Process", "For", "Times usual")
    return Table("sq-longest", heads, [_long_run(each, links) for each in overview.longest])


def _long_run(run: LongRun, links: Links) -> Sequence[str]:
    process = run.process
    return (
        link(links.to_page(Job, str(run.job_id)), f"#{run.job_id}"),
        texts.short_path(run.task),
        named(run.queue),
        DASH
        if process is None
        else link(links.to_page(Process, str(process.pk)), named(process.row)),
        texts.duration(run.since),
        DASH if run.times_usual is None else _times(run.times_usual),
    )


def errors(overview: Overview, links: Links) -> Table:
    """Return the table of error groups; empty for a user who may not see them."""
    heads = ["Error", "Task", "Jobs", "First", "Last", "When"]
    if links.may_retry:
        heads.append(hidden("Action"))
    shown = overview.causes.shown if links.to_errors() else ()
    window = timedelta(minutes=overview.scope.window.length)
    present = overview.moment.present
    since = max(filter(None, (present - window, overview.causes.since)))
    return Table("sq-errors", heads, [[*_cause(each, since, present, links)] for each in shown])


def _cause(cause: Cause, since: datetime, present: datetime, links: Links) -> Iterator[str]:
    group = cause.group
    error, url = texts.clean(group.error, MOST_OF_ERROR), links.to_group(group.fingerprint)
    counts = counted(cause.failed_at, since, present, SPARK_STEPS)
    words = f"{sum(counts):,} failed within {texts.between(since, present)}"
    yield link(url, titled(error, error))
    yield texts.short_path(group.task_path)
    yield group.count.text
    yield texts.ago(group.first, present)
    yield texts.ago(group.last, present)
    yield spark_svg(counts, words) if any(counts) else ""
    if links.may_retry:
        yield format_html(
            '<button class="button" form="sq-retry" formaction="{}">Retry all {}</button>',
            url, group.count.text,
        )  # fmt: skip


def counted(times: Iterable[datetime], since: datetime, until: datetime, steps: int) -> list[int]:
    """Count times by steps of equal length; those outside are left out."""
    length = (until - since) / steps
    counts = [0] * steps
    for each in times:
        if length and since <= each <= until:
            counts[min(steps - 1, (each - since) // length)] += 1
    return counts


def schedules(overview: Overview, links: Links) -> Table:
    """Return the table of recurring tasks that are due next."""
    heads = ("Recurring task", "Task", "Due in", "Due", "Last run", "Ended")
    present, runs = overview.moment.present, overview.schedules or ()
    return Table("sq-schedules", heads, [_next_run(each, links, present) for each in runs])


def _next_run(run: NextRun, links: Links, present: datetime) -> Sequence[str]:
    last, is_known = run.last, run.last.job_id is not None and run.last.ending
    job = links.to_page(Job, str(last.job_id)) if is_known else ""
    return (
        link(links.to_page(RecurringTask, run.key), named(run.key)),
        texts.short_path(run.task),
        texts.between(present, run.at),
        texts.moment(run.at),
        DASH if last.at is None else texts.moment(portable.aware(last.at)),
        bad(link(job, last.ending), last.ending == "failed"),
    )


def rate(per_minute: float) -> str:
    """Return so many in a minute, for people to read."""
    return "< 0.1" if 0 < per_minute < 0.1 else number(round(per_minute, 1))


def _share(share: float | None) -> str:
    if share is None:
        return DASH
    if 0 < share < 0.0005:
        return "< 0.1%"
    return f"{share:.0%}" if share in (0, 1) or share >= 0.1 else f"{share:.1%}"


def _times(factor: float) -> str:
    return f"{factor:,.0f} x" if factor >= 10 else f"{factor:.1f} x"
