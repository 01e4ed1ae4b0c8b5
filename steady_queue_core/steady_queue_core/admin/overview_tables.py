"""The numbers and tables of the overview, as its templates show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from ..dialects import portable
from ..models import Job, Pause, Process, RecurringTask
from ..overview import Overview
from ..overview.queues import QueueLine
from . import texts
from .charts_svg import spark_svg
from .overview_charts import clock_of, milliseconds, number
from .overview_links import Links

DASH = "-"
#: Characters of an error, and points of the line that tells when its jobs have failed.
MOST_OF_ERROR, SPARK_STEPS = 160, 30


def numbers(overview: Overview, links: Links) -> Iterator[dict[str, Any]]:
    """Yield what there is: label, number, address, and whether it is bad."""
    for state, count in overview.lengths.states.items():
        if state != "waiting" or count.number:
            yield {
                "label": state.capitalize(),
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
    yield {"label": "Finished/min", "value": rate(overview.finished_rate)}
    yield {"label": "Wait, 95 %", "value": milliseconds(overview.slow_wait)}


def problems(overview: Overview, links: Links) -> Iterator[dict[str, Any]]:
    """Yield what is wrong."""
    for each in overview.problems:
        url, label = links.to_problem(each)
        finding = each.finding
        yield {
            "code": finding.code,
            "severity": finding.severity,
            "text": finding.text,
            "remedy": finding.remedy,
            "url": url,
            "label": label,
        }


def queues(overview: Overview, links: Links) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of queues."""
    for line in overview.queues:
        listed, name = line.listed, line.name
        verb = "resume" if listed.is_paused else "pause"
        wait = listed.oldest_wait
        yield {
            "name": texts.name(name),
            "full_name": texts.clean(name),
            "url": links.to_page(Pause, name),
            "state": _state(line, overview.moment.present),
            "is_bad": listed.is_unserved or listed.is_paused,
            "ready": listed.ready.text,
            "ready_url": links.to_jobs("ready", queue=name),
            "oldest_wait": DASH if wait is None else texts.duration(wait),
            "running": line.running.text,
            "blocked": line.blocked.text,
            "failed": f"{line.window.failed:,}",
            "failed_url": links.to_jobs("failed", queue=name) if line.window.failed else "",
            "in_rate": DASH if line.in_rate is None else rate(line.in_rate),
            "out_rate": rate(line.out_rate),
            "spark": _spark(line),
            "empty_in": DASH if line.time_to_empty is None else texts.duration(line.time_to_empty),
            "button": links.to_button(verb, name),
            "verb": verb.capitalize(),
        }


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
    pairs = [sum(line.spark[at : at + 2]) for at in range(0, len(line.spark), 2)]
    return spark_svg(pairs, f"{sum(pairs):,} ended in the last hour")


def tasks(overview: Overview, links: Links) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of tasks."""
    length = overview.scope.window.length
    for path, total in overview.tasks:
        failure = total.last_failure
        yield {
            "name": texts.short_path(path) if path else "other tasks",
            "url": links.here(task=path) if path else "",
            "runs": f"{total.attempts:,}",
            "failed": _share(total.failed_share),
            "is_bad": total.failed > 0,
            "failed_url": links.to_jobs("failed", task=path) if total.failed and path else "",
            "retried": _share(total.retried_share),
            "mean": milliseconds(total.run_mean),
            "slow": milliseconds(total.run(0.95)),
            "longest": milliseconds(total.run_max) if total.run_max else DASH,
            "last_failure": clock_of(failure, length) if failure else DASH,
        }


def longest(overview: Overview, links: Links) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of the jobs that have run for longest."""
    for run in overview.longest:
        process = run.process
        yield {
            "number": f"#{run.job_id}",
            "url": links.to_page(Job, str(run.job_id)),
            "task": texts.short_path(run.task),
            "queue": texts.named(run.queue),
            "process": DASH if process is None else texts.named(process.row),
            "process_url": "" if process is None else links.to_page(Process, str(process.pk)),
            "since": texts.duration(run.since),
            "times": DASH if run.times_usual is None else _times(run.times_usual),
        }


def errors(overview: Overview, links: Links) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of error groups; none for a user who may not see them."""
    if not links.to_errors():
        return
    window = timedelta(minutes=overview.scope.window.length)
    present = overview.moment.present
    since = max(filter(None, (present - window, overview.causes.since)))
    for each in overview.causes.shown:
        group = each.group
        counts = counted(each.failed_at, since, present, SPARK_STEPS)
        words = f"{sum(counts):,} failed within {texts.between(since, present)}"
        yield {
            "error": texts.clean(group.error, MOST_OF_ERROR),
            "url": links.to_group(group.fingerprint),
            "task": texts.short_path(group.task_path),
            "jobs": group.count.text,
            "first": _ago(group.first, present),
            "last": _ago(group.last, present),
            "spark": spark_svg(counts, words) if any(counts) else "",
        }


def counted(times: Iterable[datetime], since: datetime, until: datetime, steps: int) -> list[int]:
    """Count times by steps of equal length; those outside are left out."""
    length = (until - since) / steps
    counts = [0] * steps
    for each in times:
        if length and since <= each <= until:
            counts[min(steps - 1, (each - since) // length)] += 1
    return counts


def _ago(instant: datetime, present: datetime) -> str:
    return texts.dated(f"{texts.between(instant, present)} ago", instant)


def schedules(overview: Overview, links: Links) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of recurring tasks that are due next."""
    present = overview.moment.present
    for each in overview.schedules or ():
        last, url = each.last, ""
        if last.job_id is not None and last.ending:
            url = links.to_page(Job, str(last.job_id))
        yield {
            "key": texts.named(each.key),
            "url": links.to_page(RecurringTask, each.key),
            "task": texts.short_path(each.task),
            "due_in": texts.between(present, each.at),
            "due": texts.moment(each.at),
            "last": DASH if last.at is None else texts.moment(portable.aware(last.at)),
            "ending": last.ending,
            "ending_url": url,
            "is_bad": last.ending == "failed",
        }


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
