"""The pages of the admin read a bounded number of rows, whatever the history."""

from __future__ import annotations

from typing import Any

import pytest

from ..admin.visitor import EVERYTHING, Visitor
from .building import GROUPS, Shape
from .conftest import LARGE, Histories
from .costs import Meter
from .test_costs import BACKEND, on_every_kind

#: The first of the tests of a database builds it, which takes a busy machine a while.
pytestmark = pytest.mark.timeout(600)

#: A list of jobs counts eight states up to 10,000 each, and reads a page.
COUNTS = 100_000
#: Where no index serves a filter, it looks at 5,000 jobs besides, with what belongs to them.
LOOKS = 60_000
LISTS: list[dict[str, str]] = [
    *(
        {"state": state}
        for state in ("", "ready", "scheduled", "blocked", "waiting", "running", "failed")
    ),
    {"state": "finished"},
    {"state": "ready", "queue": "q7"},
    {"state": "failed", "task": "shop.tasks.t3"},
    {"state": "failed", "error": GROUPS[1]},
    {"state": "finished", "task": "shop.tasks.none"},
    {"task": "shop.tasks.none"},
    {"q": "1234"},
    {"q": "shop.tasks.none"},
    # A part of a path, of an error, and of arguments, which no index finds.
    {"q": "tasks.t3"},
    {"state": "failed", "q": "no such words"},
    {"state": "finished", "arguments": "no such words"},
    {"state": "finished", "since": "1h"},
    {"state": "finished", "since": "2000-01-01", "until": "1h", "task": "shop.tasks.none"},
    {"state": "failed", "since": "10m", "q": "ValueError"},
    {"since": "1h", "queue": "q7"},
    {"until": "2000-01-01"},
]
BATCHES: list[dict[str, str]] = [
    {},
    {"status": "running"},
    {"status": "failed"},
    {"kind": "group"},
    {"q": "none"},
]
MEMBERS: list[dict[str, str]] = [
    {},
    {"members": "succeeded"},
    {"members": "failed"},
    {"p": "after[30000]"},
    {"p": "before[30000]", "members": "pending"},
]


@on_every_kind
@pytest.mark.django_db
def test_no_page_reads_the_history(histories: Histories, kind: str, settings: Any) -> None:
    using, shape = histories.alias(kind, LARGE, analyzed=True), Shape.of(LARGE)
    options = {"database": using}
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": options}}
    visitor = Visitor(*EVERYTHING)
    pages = [
        *((visitor.url("job"), query) for query in LISTS),
        *((visitor.url("job", "errors"), query) for query in ({}, {"queue": "q7"})),
        *((visitor.url(name), {}) for name in ("pause", "process", "semaphore", "recurringtask")),
        *((visitor.url("jobbatch"), query) for query in BATCHES),
        *((visitor.url("jobbatch", "change", 1), query) for query in MEMBERS),
        *(
            (visitor.url("job", "change", shape.first(state)), {})
            for state in ("ended", "ready", "scheduled", "claimed", "blocked")
        ),
    ]
    too_many = []
    for url, query in pages:
        with Meter(using).undone() as meter:
            assert visitor.see(url, **query).status == 200
        if not 0 < meter.rows <= COUNTS + LOOKS:
            too_many.append(f"{url} {query}: {meter.rows} rows, most by {max(meter.costs)}")
    assert not too_many, "\n".join(too_many)
