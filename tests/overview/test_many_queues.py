"""Many queues and workers, and workers that tell more than any does: looked at in bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from steady_queue_core.dialects import QueueSelector
from steady_queue_core.listings import processes, queues
from steady_queue_core.listings.processes import QueueList, listed_processes
from steady_queue_core.listings.queues import listed_queues
from steady_queue_core.models import Process
from steady_queue_core.overview import queues as of_overview

from ..command_line.invoking import invoke
from ..models.everywhere import on_every_database
from .planting import Garden

NAMES = [f"q{number}" for number in range(40)]


class Counting:
    """Counts the queue lists that are read, and the questions to them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.selectors = 0
        of = QueueSelector.of
        monkeypatch.setattr(QueueSelector, "of", lambda entries: self._read(of, entries))

    def _read(self, of: Any, entries: Any) -> QueueSelector:
        self.selectors += 1
        found: QueueSelector = of(entries)
        return found


@pytest.mark.django_db(transaction=True)
def test_a_queue_list_is_read_once_however_many_queues_and_workers_there_are(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        garden.ready(1, name)
    for number in range(20):
        garden.start("worker", f"w{number}", queues=[*NAMES, f"own-{number % 2}*"], threads=1)
    counting = Counting(monkeypatch)
    [line] = [each for each in garden.look().lengths.queues if each == "q7"]
    of_overview_alone = counting.selectors
    assert of_overview_alone <= 4
    found = listed_queues("default", listed_processes("default"))
    assert {each.name: each.workers for each in found}[line] == 20 + len(["the one of the garden"])
    assert counting.selectors - of_overview_alone <= 4


@on_every_database
def test_a_worker_that_names_very_many_queues_costs_no_more_statements(
    using: str, garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MOST_ENTRIES", 100)
    monkeypatch.setattr(queues, "MOST_NAMED", 120)
    garden.ready(1, "mail")
    for worker in ("a", "b", "c"):
        entries = [f"{worker}{number}" for number in range(5_000)]
        garden.start("worker", worker, queues=[*entries, "mail"], threads=1)
    with CaptureQueriesContext(connections[using]) as captured:
        found = listed_queues(using, listed_processes(using))
    assert len(captured) < 30
    assert len(found) <= 120 + len({"mail", "default"})
    assert len(garden.look().lengths.queues) <= of_overview.MOST
    told = "Workers name 180 more queues, which were not looked at."
    for command in ("queues", "status"):
        assert told in invoke(command).lines
    assert invoke("queues", "--json").json["databases"][0]["left_out"] == 180


@pytest.mark.django_db(transaction=True)
def test_what_is_left_out_of_a_queue_list_is_said(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MOST_ENTRIES", 2)
    garden.start("worker", "w", queues=["a", "b", "c", "d"], threads=3)
    [worker] = [each for each in listed_processes("default") if each.row.name == "w"]
    assert worker.queues == ["a", "b"]
    assert worker.serves_text == "a, b and 2 more, which are not looked at; 3 threads"


@pytest.mark.django_db(transaction=True)
def test_more_than_a_process_tells_is_not_read(garden: Garden) -> None:
    garden.start("worker", "w", queues=["a"], threads=3)
    long = json.dumps({"queues": ["x" * 100] * 20_000})
    Process.objects.filter(name="w").update(metadata=long)
    [worker] = [each for each in listed_processes("default") if each.row.name == "w"]
    assert worker.known == {}
    assert processes.is_too_long(worker.row)
    assert not worker.serves("a")


@pytest.mark.django_db(transaction=True)
def test_queues_that_are_not_counted_are_told(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_overview, "MOST", 2)
    for name in ("a", "b", "c", "d"):
        garden.ready(1, name)
    seen = garden.look()
    assert seen.queues_unseen >= 2
    assert len(seen.lengths.queues) == 2


ENTRIES = st.lists(
    st.sampled_from(["*", "a", "ab", "a*", "b*", "!a", "!a*", "!*", "!ab*", "", "!"])
)


@given(ENTRIES, st.sampled_from(["a", "ab", "abc", "b", "bc", "c", "a*", "", "*"]))
def test_a_prepared_list_takes_what_the_selector_takes(entries: list[str], queue: str) -> None:
    selector = QueueSelector.of(entries)
    if selector.takes_all:
        expected = not selector.excludes(queue)
    else:
        expected = queue in selector.matching(
            lambda prefix: [queue] if queue.startswith(prefix) else [], frozenset()
        )
    assert QueueList(entries).takes(queue) is expected
