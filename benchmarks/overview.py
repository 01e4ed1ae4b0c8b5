"""The cost of the overview: its queries, its time and its size, with no jobs and with very many.

    python -m benchmarks.overview --database postgres,mysql

The page is requested as a browser would, without a network between.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from django.core.management import call_command
from django.db import connections
from django.test import Client

from benchmarks import testbed
from benchmarks.columns import aligned

QUEUES, TASKS = 50, 24
#: What a page may cost: queries, milliseconds in databases and in all, kilobytes.
QUERIES, IN_DATABASE, IN_ALL, SIZE = 12, 60.0, 150.0, 40.0
#: Queries of what refreshes.
QUERIES_TO_REFRESH = 8
#: Requests before those that count.
WARM_UP = 3
URL = "/admin/steady_queue/overview/"
PAGES = {"1h": {}, "24h": {"window": "24h"}, "7d": {"window": "7d"}, "refresh": {"fragment": "1"}}
CONTRIB = ("admin", "auth", "contenttypes", "sessions", "messages")
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
PROCESSORS = [
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
]


class Seen(NamedTuple):
    """One request."""

    queries: int
    #: Milliseconds.
    in_database: float
    in_all: float
    #: Bytes as they are, and as a server with compression sends them.
    size: int
    compressed: int


class Line(NamedTuple):
    """One line of the table."""

    database: str
    jobs: int
    page: str
    seen: Seen

    @property
    def is_within(self) -> bool:
        """Whether the page keeps to its limits."""
        seen = self.seen
        queries = QUERIES_TO_REFRESH if self.page == "refresh" else QUERIES
        return (
            seen.queries <= queries
            and seen.in_database <= IN_DATABASE
            and seen.in_all <= IN_ALL
            and seen.size <= SIZE * 1000
        )


def measure(alias: str, client: Client, samples: int) -> dict[str, Seen]:
    """Request each page some times; return the medians."""
    found = {}
    with testbed.backend_on(alias):
        for name, query in PAGES.items():
            seen = [request(alias, client, query) for _ in range(WARM_UP + samples)][WARM_UP:]
            found[name] = Seen(*(median(values) for values in zip(*seen, strict=True)))
    return found


def request(alias: str, client: Client, query: dict[str, str]) -> Seen:
    """Request a page once."""
    seconds: list[float] = []

    def timed(execute: Any, *arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(*arguments)
        finally:
            seconds.append(time.perf_counter() - began)

    began = time.perf_counter()
    with connections[alias].execute_wrapper(timed), connections["default"].execute_wrapper(timed):
        response = client.get(URL, query)
    in_all = time.perf_counter() - began
    if response.status_code != 200:
        raise AssertionError(f"{query}: {response.status_code}")
    size = len(response.content)
    compressed = len(gzip.compress(response.content, 6))
    return Seen(len(seconds), sum(seconds) * 1000, in_all * 1000, size, compressed)


def fill(alias: str, jobs: int) -> None:
    """Have so many jobs, most of them finished, and the statistics of a week."""
    from steady_queue_core.dialects import dialect_for
    from steady_queue_core.dialects.database import Database
    from steady_queue_core.models import Sample, Statistic
    from steady_queue_core.statistics.recent_hours import sum_up
    from steady_queue_core.statistics.tally import HOUR, MINUTE, RECENT_HOUR
    from tests.million.building import Shape, analyze, build

    build(alias, Shape.of(jobs))
    testbed.register(alias)
    present = int(Database.of(alias).current_time().timestamp() // 60)
    hour = present // 60 * 60
    spans = {
        MINUTE: range(present - 120, present + 1),
        RECENT_HOUR: range(hour - 48 * 60, hour, 60),
        HOUR: range(hour - 7 * 24 * 60, hour - 48 * 60, 60),
    }
    queues = [f"q{number}" for number in range(QUEUES)]
    Statistic.objects.using(alias).bulk_create(
        (
            Statistic(
                span=span, minute=minute, stored_minute=minute, queue_name=name, writer=1,
                task_path=f"shop.tasks.t{number % TASKS}", finished=14, failed=1, enqueued=15,
                run_ms=1_500, run_max=400, run_histogram=_counted(minute, number, ",,"),
                wait_ms=150, wait_max=40, wait_histogram=_counted(number, minute, ""),
            )
            for span, minutes in spans.items()
            for minute in minutes
            for number, name in enumerate(queues)
        ),
        batch_size=1_000,
    )  # fmt: skip
    Sample.objects.using(alias).bulk_create(
        (
            Sample(minute=present - ago, queue_name=name, ready=7, oldest_wait_ms=90)
            for ago in range(0, 7 * 24 * 60, 10)
            for name in ("", *queues)
        ),
        batch_size=1_000,
    )
    while sum_up(connections[alias], dialect_for(alias)):
        pass
    analyze(connections[alias])


def _counted(one: int, other: int, before: str) -> str:
    """Return a histogram that hardly any other row has."""
    from steady_queue_core.statistics import histogram

    return before + histogram.write([1 + one % 97, 2 + other % 89, 4, 8 + one % 7])


def signed_in() -> Client:
    """Return a superuser at a browser."""
    from django.contrib.auth.models import User  # Not before Django is set up.

    call_command("migrate", verbosity=0, interactive=False)
    client = Client()
    client.force_login(User.objects.create_superuser("chief"))
    return client


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0 when every figure keeps to its limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overview", description=__doc__)
    parser.add_argument("--database", metavar="NAME,...", help=", ".join(testbed.DATABASES))
    parser.add_argument("--jobs", type=int, default=1_000_000, metavar="N", help="of the large one")
    parser.add_argument("--samples", type=int, default=20, metavar="N", help="requests of a kind")
    parsed = parser.parse_args(arguments)
    testbed.set_up(
        *(f"django.contrib.{each}" for each in CONTRIB),
        SECRET_KEY="of no session that outlives this process",
        ALLOWED_HOSTS=["testserver"],
        ROOT_URLCONF="benchmarks.admin_urls",
        MIDDLEWARE=MIDDLEWARE,
        STATIC_URL="static/",
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": PROCESSORS},
            }
        ],
    )
    client = signed_in()
    lines: list[Line] = []
    for kind in testbed.chosen(parsed.database):
        aliases = (f"{kind}_empty", f"{kind}_large")
        try:
            with testbed.queues(kind, aliases) as version:
                print(f"{version}: {parsed.jobs:,} jobs", file=sys.stderr, flush=True)
                empty, large = aliases
                fill(large, parsed.jobs)
                for alias, jobs in ((empty, 0), (large, parsed.jobs)):
                    seen = measure(alias, client, parsed.samples)
                    lines += [Line(version, jobs, page, each) for page, each in seen.items()]
        except LookupError as missing:
            print(f"{kind}: not measured: {missing}", file=sys.stderr)
    print(_table(lines))
    return int(not all(line.is_within for line in lines))


def _table(lines: Sequence[Line]) -> str:
    head = ["medians", "jobs", "page", "queries", "ms in databases", "ms in all", "kB", "kB gzip",
            "limits"]  # fmt: skip
    rows = [
        [line.database, f"{line.jobs:,}", line.page, f"{line.seen.queries:g}",
         f"{line.seen.in_database:.1f}", f"{line.seen.in_all:.1f}", f"{line.seen.size / 1000:.1f}",
         f"{line.seen.compressed / 1000:.1f}", "kept" if line.is_within else "EXCEEDED"]
        for line in lines
    ]  # fmt: skip
    return aligned([head, *rows])


if __name__ == "__main__":
    sys.exit(main())
