"""Fair queues: in which order jobs come, by the keys that share a queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from steady_queue_core import Unique, call, chain, task
from steady_queue_core.conformance import threads
from steady_queue_core.conformance.base import ending, limited_job, new_job, stored_id
from steady_queue_core.dialects import (
    ClaimedJob,
    Ending,
    FairKey,
    NewJob,
    QueueSelector,
)
from steady_queue_core.dialects.database import Database
from steady_queue_core.features.fair import of_database as fair_queues
from steady_queue_core.features.fair.queues import FairQueues
from steady_queue_core.models import Job, ReadyExecution, ScheduledExecution, Share, Turn
from steady_queue_core.models.operations.idle_keys import IdleTurns
from steady_queue_core.models.operations.retry import retry
from steady_queue_core.models.operations.run_now import run_now

from ..core.driver import Driver
from .everywhere import Jobs, on_every_database, on_every_server
from .recurrence import tasks

SECOND = timedelta(seconds=1)


@task(queue_name="fair")
def tell(number: int) -> int:
    return number


def declare(monkeypatch: pytest.MonkeyPatch, queues: FairQueues | None) -> None:
    """Let these queues be fair in all databases."""
    monkeypatch.setattr(fair_queues, "_source", lambda alias: queues)
    monkeypatch.setattr(fair_queues, "_known", {})


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue ``fair`` is fair, and no other one."""
    declare(monkeypatch, FairQueues({"fair": 1.0}))


def of_key(key: str, job: NewJob | None = None) -> NewJob:
    """Return a job of a key in the fair queue."""
    job = job or new_job()
    metadata = f'{{"fair": "{key}"}}'
    return replace(job, queue_name="fair", fair_key=key, metadata=metadata)


class Fair(Jobs):
    """Jobs of a fair queue."""

    def enqueue(self, *keys: str) -> list[int]:
        jobs = [of_key(key) for key in keys]
        return [stored_id(new) for new in self.dialect.enqueue(self.connection, jobs)]

    def weigh(self, **weights: float) -> None:
        for key, weight in weights.items():
            Share.objects.using(self.using).create(queue_name="fair", key=key, weight=weight)

    def keys(self, claims: Sequence[ClaimedJob]) -> list[str]:
        """Return the keys of jobs."""
        return [str(claim.metadata).split('"')[3] for claim in claims]

    def served(self, count: int, at_once: int = 10) -> list[str]:
        """Claim and finish so many jobs; return their keys, in order."""
        keys: list[str] = []
        while len(keys) < count:
            claims = self.claim(min(at_once, count - len(keys)))
            assert claims
            keys += self.keys(claims)
            self.end(claims)
        return keys

    def end(self, claims: Sequence[ClaimedJob], how: Ending = Ending.FINISHED, **more: Any) -> None:
        for claim in claims:
            known = {"attempts": 1, "started_at": claim.claimed_at} | more
            self.dialect.settle(self.connection, [ending(how, claim, **known)])

    def others(self, job_id: int) -> list[float]:
        """Return the turns of all jobs but one."""
        return [turn for pk, turn in self.turns.items() if pk != job_id]

    @property
    def turns(self) -> dict[int, float]:
        return dict(ReadyExecution.objects.using(self.using).values_list("pk", "turn"))


def assert_shares(keys: Sequence[str], weights: Mapping[str, float], window: int = 200) -> None:
    """Assert that in every window each key has its share of the jobs, up to two of them."""
    whole = sum(weights.values())
    for start in range(len(keys) - window + 1):
        counted = Counter(keys[start : start + window])
        for key, weight in weights.items():
            assert abs(counted[key] - window * weight / whole) <= 2, (start, key, counted)


@on_every_database
def test_keys_share_a_queue_by_their_weights(using: str) -> None:
    """One by one and in bulk, whatever the order in which they come."""
    fair, weights = Fair(using), {"one": 1, "two": 2, "five": 5}
    fair.weigh(two=2, five=5)
    fair.enqueue(*["one"] * 300, *["two"] * 300, *["five"] * 500)
    assert_shares(fair.served(600), weights)


@on_every_database
def test_a_key_that_returns_has_saved_nothing_up(using: str) -> None:
    fair = Fair(using)
    fair.weigh(two=2, five=5)
    fair.enqueue(*["one"] * 400, *["two"] * 400, *["five"] * 125)
    assert_shares(fair.served(200), {"one": 1, "two": 2, "five": 5})
    assert_shares(fair.served(300), {"one": 1, "two": 2})
    fair.enqueue(*["five"] * 600)
    assert_shares(fair.served(300), {"one": 1, "two": 2, "five": 5})


@on_every_database
def test_a_newcomer_comes_within_one_round(using: str) -> None:
    fair = Fair(using)
    fair.enqueue(*["busy"] * 1_500)
    fair.served(100)
    fair.enqueue("newcomer")
    assert "newcomer" in fair.served(2, at_once=1)


@on_every_database
def test_jobs_that_come_one_by_one_share_as_well(using: str) -> None:
    fair = Fair(using)
    for _ in range(30):
        fair.enqueue("a", "a", "a", "b")
    keys = fair.served(120)
    assert_shares(keys[:58], {"a": 1, "b": 1}, window=20)
    assert set(keys[62:]) == {"a"}


@on_every_database
def test_of_a_key_jobs_come_in_their_order(using: str) -> None:
    fair = Fair(using)
    ids = fair.enqueue(*["a", "b", "a", "c"] * 20)
    claims = fair.claim(100)
    for key in "abc":
        found = [claim.job_id for claim in claims if fair.keys([claim]) == [key]]
        assert found == sorted(found)
    assert sorted(claim.job_id for claim in claims) == ids


@on_every_database
def test_each_rank_shares_on_its_own(using: str) -> None:
    fair = Fair(using)
    fair.enqueue(*["busy"] * 50)
    urgent = [of_key("busy", new_job(rank=-5)) for _ in range(20)]
    fair.dialect.enqueue(fair.connection, urgent)
    fair.enqueue("other")
    fair.dialect.enqueue(fair.connection, [of_key("other", new_job(rank=-5))])
    keys = fair.served(71, at_once=1)
    assert "other" in keys[:2]
    assert "other" in keys[21:23]


@on_every_database
def test_fair_and_plain_queues_are_compared_by_age(using: str) -> None:
    fair = Fair(using)
    [old] = fair.ready(1, "plain")
    fair.enqueue("a")
    [new] = fair.ready(1, "plain")
    claims = fair.claim(3)
    assert [claim.queue_name for claim in claims] in (
        ["plain", "fair", "plain"], ["plain", "plain", "fair"],
    )  # fmt: skip
    assert claims[0].job_id == old
    assert new in {claim.job_id for claim in claims}


@on_every_database
def test_a_plain_queue_has_ids_for_turns(using: str) -> None:
    fair = Fair(using)
    ids = fair.ready(3, "plain")
    assert fair.turns == {job_id: job_id for job_id in ids}
    assert not Turn.objects.using(using).exists()


@on_every_database
def test_what_is_retried_at_once_takes_a_new_turn(using: str) -> None:
    fair = Fair(using)
    fair.enqueue(*["a"] * 20, *["b"] * 20)
    first = fair.claim(1)
    [failed] = fair.keys(first)
    fair.end(first, Ending.RETRIED)
    turns = fair.turns
    assert turns[first[0].job_id] == max(turns.values())
    assert Counter(fair.served(39))[failed] in (19, 20)


@on_every_database
def test_what_is_released_comes_next(using: str) -> None:
    fair = Fair(using)
    fair.enqueue(*["a"] * 20, *["b"] * 20)
    fair.served(10)
    released = fair.claim(1)
    last = dict(Turn.objects.using(using).values_list("key", "turn"))
    fair.end(released, Ending.RELEASED)
    assert fair.turns[released[0].job_id] < min(fair.others(released[0].job_id))
    assert dict(Turn.objects.using(using).values_list("key", "turn")) == last


@on_every_database
def test_what_is_released_one_by_one_keeps_its_order(using: str) -> None:
    fair = Fair(using)
    fair.enqueue(*["a"] * 30)
    claims = fair.claim(6)
    for number in (2, 0, 5, 1, 4, 3):
        fair.end([claims[number]], Ending.RELEASED)
    expected = [claim.job_id for claim in claims]
    assert [claim.job_id for claim in fair.claim(6)] == expected


@on_every_database
def test_what_is_postponed_before_it_starts_takes_no_other_turn(using: str) -> None:
    """As by a rate limit, or a unique key that is being taken."""
    fair = Fair(using)
    fair.enqueue(*["a"] * 30)
    [postponed] = fair.claim(1)
    last = dict(Turn.objects.using(using).values_list("key", "turn"))
    fair.end([postponed], Ending.RETRIED, delay=3600.0, attempts=0, started_at=None)
    fair.served(10)
    ScheduledExecution.objects.using(using).update(due_at=fair.present(using) - SECOND)
    assert fair.dialect.dispatch(fair.connection, 10).moved == 1
    assert fair.turns[postponed.job_id] < min(fair.others(postponed.job_id))
    assert dict(Turn.objects.using(using).values_list("key", "turn")) == last


@on_every_database
def test_what_is_retried_in_a_claim_is_not_claimed_before_others(using: str) -> None:
    fair = Fair(using)
    fair.enqueue(*["a"] * 5, *["b"] * 5)
    first = fair.claim(1)
    started = first[0].claimed_at
    outcomes = [ending(Ending.RETRIED, first[0], attempts=1, started_at=started)]
    held, claims = fair.dialect.settle_and_claim(
        fair.connection, outcomes, fair.worker, QueueSelector(), 3
    )
    assert held == {first[0].job_id}
    assert first[0].job_id not in {claim.job_id for claim in claims}


@on_every_database
def test_what_becomes_due_takes_its_turn_then(using: str) -> None:
    fair = Fair(using)
    due = [of_key("late", new_job(delay=timedelta(hours=1))) for _ in range(3)]
    early = [stored_id(new) for new in fair.dialect.enqueue(fair.connection, due)]
    assert not Turn.objects.using(using).exists()
    fair.enqueue(*["busy"] * 40)
    fair.served(20)
    ScheduledExecution.objects.using(using).update(due_at=fair.present(using) - 2 * SECOND)
    moved = fair.dialect.dispatch(fair.connection, 2)
    assert (moved.moved, moved.next_due_in) == (2, 0)
    assert fair.dialect.dispatch(fair.connection, 10).moved == 1
    assert sorted(each for each in early if each in fair.turns) == early
    assert fair.served(6, at_once=1).count("late") == 3


@on_every_database
def test_what_waits_for_a_permit_takes_its_turn_with_it(using: str) -> None:
    fair = Fair(using)
    limited = [of_key("limited", limited_job(to=1)) for _ in range(3)]
    for job in limited:
        fair.dialect.enqueue(fair.connection, [job])
    assert len(fair.turns) == 1
    fair.enqueue(*["busy"] * 30)
    assert fair.served(20, at_once=1).count("limited") == 3
    assert set(fair.served(13)) == {"busy"}


@on_every_database
def test_perfectqueues_own_sequence_holds(using: str) -> None:
    """Three tasks of one user and one of another, of whom each may run two at once."""
    fair = Fair(using)
    for user in ("u1", "u1", "u1", "u2"):
        job = limited_job(user, to=2)
        fair.dialect.enqueue(fair.connection, [of_key(user, job)])
    claims = [claim for _ in range(4) for claim in fair.claim(1)]
    assert fair.keys(claims) == ["u1", "u2", "u1"]
    fair.end(claims[:1])
    assert fair.keys(fair.claim(10)) == ["u1"]


@on_every_database
def test_what_was_failed_and_is_retried_takes_its_turn(using: str) -> None:
    fair = Fair(using)
    [job_id] = fair.enqueue("a")
    fair.end(fair.claim(1), Ending.FAILED, exception_class="x.Y", message="", errors="[]")
    fair.enqueue(*["b"] * 30)
    fair.served(10)
    assert retry(Job.objects.using(using), [job_id]) == 1
    assert fair.turns[job_id] == min(fair.others(job_id))


@on_every_database
def test_what_is_run_at_once_takes_its_turn(using: str) -> None:
    fair = Fair(using)
    later = of_key("a", new_job(delay=timedelta(hours=1)))
    [new] = fair.dialect.enqueue(fair.connection, [later])
    fair.enqueue(*["b"] * 30)
    fair.served(10)
    job_id = stored_id(new)
    assert run_now(Job.objects.using(using), [job_id]) == 1
    assert fair.turns[job_id] == min(fair.others(job_id))


@on_every_server
def test_a_key_is_locked_until_its_jobs_are_stored(using: str) -> None:
    """Without the lock both jobs had the same turn."""
    fair = Fair(using)
    fair.enqueue("a")
    with transaction.atomic(using=using):
        fair.enqueue("a")
        other = threads.start(using, lambda: fair_in_thread(using))
        with pytest.raises(TimeoutError):
            other.result(0.3)
    other.result(10)
    first, second, third = sorted(fair.turns.values())
    assert (second - first, third - second) == (pytest.approx(1), pytest.approx(1))


@on_every_server
def test_what_is_retried_locks_its_keys_in_one_order(using: str) -> None:
    """Those of ready jobs and of blocked ones together: otherwise the two would deadlock."""
    fair = Fair(using)
    new = [of_key("b"), of_key("a", limited_job("x", 1))]
    ids = [stored_id(each) for each in fair.dialect.enqueue(fair.connection, new)]
    fair.end(fair.claim(9), Ending.FAILED, exception_class="x.Y", message="", errors="[]")
    with transaction.atomic(using=using):
        fair.enqueue("a")
        retrying = threads.start(using, lambda: retry(Job.objects.using(using), ids))
        wait([retrying], timeout=0.5)
        fair.enqueue("b")
    assert retrying.result(20) == 2


def fair_in_thread(using: str) -> None:
    dialect = Database.of(using)
    dialect.dialect.enqueue(dialect.connection, [of_key("a")])


@on_every_database
def test_hostile_rows_take_no_part(using: str) -> None:
    fair = Fair(using)
    fair.enqueue("a")
    Turn.objects.using(using).update(turn=1e300)
    fair.weigh(a=-5.0, b=1e300)
    fair.enqueue("a", "b")
    first, *others = sorted(fair.turns.values())
    assert others == [pytest.approx(first), pytest.approx(first)]


@on_every_database
def test_a_process_that_does_not_know_fair_queues_stores_ids(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fair = Fair(using)
    declare(monkeypatch, None)
    [job_id] = fair.enqueue("a")
    assert fair.turns == {job_id: job_id}
    Database.of(using).give_turns([job_id])
    assert fair.turns == {job_id: job_id}


@on_every_database
def test_keys_that_have_fallen_behind_are_forgotten(using: str) -> None:
    fair = Fair(using)
    fair.enqueue("idle", *["busy"] * 30)
    fair.served(20)
    sweep = IdleTurns(using)
    assert sweep.clear(100) == 1
    assert list(Turn.objects.using(using).values_list("key", flat=True)) == ["busy"]
    fair.served(11)
    assert IdleTurns(using).clear(1) == 1


@on_every_server
def test_a_key_with_which_somebody_enqueues_is_not_forgotten(using: str) -> None:
    fair = Fair(using)
    fair.enqueue("a")
    fair.served(1)
    with transaction.atomic(using=using):
        fair.enqueue("a")
        assert threads.start(using, lambda: IdleTurns(using).clear(100)).result(10) == 0
    assert Turn.objects.using(using).count() == 1


@contextmanager
def counted(using: str) -> Iterator[list[int]]:
    """Count the statements that reach the server, or SQLite."""
    connection, found = connections[using], list[int]()
    with CaptureQueriesContext(connection) as captured:
        before = _questions(using)
        yield found
        after = _questions(using)
    # SQLite takes a lock once more that it has already.
    sent = [each for each in captured if not each["sql"].endswith("WHERE 0")]
    found.append(after - before if connection.vendor == "mysql" else len(sent))


def _questions(using: str) -> int:
    """Return how many statements MySQL has had in this session, those of a batch each."""
    if connections[using].vendor != "mysql":
        return 0
    with connections[using].cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Questions'")
        return int(cursor.fetchone()[1])


@on_every_database
def test_one_job_takes_two_more_statements(using: str) -> None:
    """One on PostgreSQL; for a key that is known as for one that is not, but for MySQL, where an
    upsert of a known one would lock the gap beside it."""
    fair = Fair(using)
    plain = replace(of_key("a"), fair_key=None)
    numbers: list[int] = []
    for job in (plain, of_key("a"), of_key("a"), of_key("b")):
        fair.dialect.enqueue(fair.connection, [plain])
        with fair.dialect.transaction(fair.connection), counted(using) as found:
            fair.dialect.enqueue(fair.connection, [job])
        numbers += found
    new, known = {"postgres": (1, 1), "default": (2, 2)}.get(using, (4, 2))
    assert [each - numbers[0] for each in numbers[1:]] == [new, known, new]


@on_every_database
def test_many_jobs_take_few_more_statements(using: str) -> None:
    fair = Fair(using)
    numbers: list[int] = []
    for key in (None, "known", "unknown"):
        jobs = [of_key(f"{key}{number % 100}") for number in range(1_500)]
        if key is None:
            jobs = [replace(job, fair_key=None) for job in jobs]
        with fair.dialect.transaction(fair.connection), counted(using) as found:
            fair.dialect.enqueue(fair.connection, jobs)
        numbers += found
    # Three of them give 500 jobs each their turns; one inserts the keys that were not found.
    most = 8 if using in ("default", "postgres") else 9
    assert all(3 < each - numbers[0] <= most for each in numbers[1:])


@on_every_database
def test_what_waits_for_others_takes_its_turn_after_them(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, fair_queues=["fair"])
    driver, order = Driver(using), list[str]()
    tell_a = tell.using(fair_key="a")
    chain(call(tell_a, 1), call(tell_a, 2)).enqueue()
    for number in range(20):
        tell.using(fair_key="b").enqueue(number)
    while claims := driver.claim(limit=1):
        order.append(str(FairKey.read(claims[0].metadata)))
        driver.settle(driver.run(claims[0]))
    assert len(order) == 22
    # The second one takes the turn that the queue has reached by then, and not its old id.
    assert order[0] == "a"
    assert "a" in order[1:4]


@on_every_database
def test_what_replaces_a_job_takes_a_turn(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, fair_queues=["fair"])
    fair = Fair(using)
    once = tell.using(unique=Unique(key="one", on_conflict="replace"), fair_key="a")
    once.enqueue(1)
    fair.enqueue(*["b"] * 30)
    once.enqueue(2)
    [(job_id, turn)] = (
        ReadyExecution.objects.using(using)
        .filter(job__metadata__contains='"unique"')
        .values_list("pk", "turn")
    )
    assert turn != job_id
    assert turn >= min(fair.others(job_id))
