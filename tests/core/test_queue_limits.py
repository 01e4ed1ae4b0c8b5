"""The option ``queue_limits``, and what a process remembers of the lengths of queues."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steady_queue_core.backend import SteadyQueueBackend
from steady_queue_core.backend_options import BackendOptions
from steady_queue_core.configuration import ConfigurationError
from steady_queue_core.features.queue_limits import lengths as queue_lengths
from steady_queue_core.features.queue_limits.lengths import Full, QueueLengths, Wanted
from steady_queue_core.features.queue_limits.options import MOST_JOBS, QueueLimits

PATH = "TASKS['default']['OPTIONS']['queue_limits']"
DICT = f"{PATH}: expected a dict of queues and numbers, such as {{'mail': 100_000}}, got"
EXPECTED = f"expected an integer of at least 1 and at most {MOST_JOBS}, or None, got"


def parsed(value: object) -> QueueLimits | None:
    return BackendOptions.parse("default", {"queue_limits": value}).queue_limits


@pytest.mark.parametrize("value", [None, {}])
def test_without_an_entry_there_is_no_limit(value: object) -> None:
    assert parsed(value) is None


def test_the_entry_that_says_most_of_a_name_limits_the_queue() -> None:
    limits = parsed({"*": 10, "mail*": 20, "mail_bulk*": 30, "mail": 40, "audit": None, "a.b*": 5})
    assert limits is not None
    names = ["mail", "mail_bulk_1", "mail_bulk", "mail2", "Mail", "audit", "audit2", "a.b", "axb"]
    assert [limits.of(name) for name in names] == [40, 30, 30, 20, 10, None, 10, 5, 10]


def test_queues_without_an_entry_have_no_limit() -> None:
    limits = parsed({"mail": MOST_JOBS})
    assert limits is not None
    assert [limits.of(name) for name in ("mail", "mail2", "")] == [MOST_JOBS, None, None]


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        (["mail"], [f"{DICT} list ['mail']"]),
        (100, [f"{DICT} int 100"]),
        ({"mail": 0}, [f"{PATH}['mail']: {EXPECTED} int 0"]),
        ({"mail": -1}, [f"{PATH}['mail']: {EXPECTED} int -1"]),
        ({"mail": MOST_JOBS + 1}, [f"{PATH}['mail']: {EXPECTED} int {MOST_JOBS + 1}"]),
        ({"mail": True}, [f"{PATH}['mail']: {EXPECTED} bool True"]),
        ({"mail": 1e3}, [f"{PATH}['mail']: {EXPECTED} float 1000.0"]),
        ({"mail": float("nan")}, [f"{PATH}['mail']: {EXPECTED} float nan"]),
        ({"mail": "100"}, [f"{PATH}['mail']: {EXPECTED} str '100'"]),
        ({"mail": {"to": 3}}, [f"{PATH}['mail']: {EXPECTED} dict {{'to': 3}}"]),
        ({1: 100}, [f"{PATH}: expected names of queues, got int 1"]),
        ({None: 100}, [f"{PATH}: expected names of queues, got None"]),
        ({"": 100}, [f"{PATH}: '' is empty"]),
        ({"!mail": 100}, [f"{PATH}: '!mail' leaves out queues; give them the limit None instead"]),
        (
            {"m*l": 100},
            [
                f"{PATH}: 'm*l' has a '*' before its end; write an exact name, a prefix such as "
                "'mail*', or '*' for all queues"
            ],
        ),
        (
            {" mail": 1, "mail\n": 1},
            [
                f"{PATH}: {name!r} contains control or other invisible characters, or leading or "
                "trailing whitespace"
                for name in (" mail", "mail\n")
            ],
        ),
        ({"q" * 256: 1}, [f"{PATH}: {'q' * 256!r} has 256 characters, at most 255 are allowed"]),
    ],
)  # fmt: skip
def test_wrong_limits_are_refused_with_their_place(value: object, problems: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parsed(value)
    assert caught.value.problems == problems


def checked(queues: list[str], limits: object) -> list[tuple[str, str, str]]:
    params = {"QUEUES": queues, "OPTIONS": {"queue_limits": limits}}
    found = SteadyQueueBackend("default", params).check()
    return [(str(each.id), each.msg, str(each.hint)) for each in found]


def test_a_limit_of_a_queue_that_the_backend_does_not_have_is_an_error() -> None:
    limits = {"mail": 1, "mial": 2, "re*": 3, "ma*": 4, "*": 5}
    assert checked(["mail", "default"], limits) == [
        (
            "steady_queue.E004",
            f"{PATH} names {entry!r}, but the QUEUES of this backend are 'default', 'mail'.",
            "Check the spelling, or add the queue to QUEUES.",
        )
        for entry in ("mial", "re*")
    ]


def test_a_backend_of_any_queues_may_limit_any() -> None:
    assert checked([], {"mail": 1, "re*": 2}) == []


class Clock:
    """The time of a process, as the test moves it."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Database:
    """A queue that is counted, in some time."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.length, self.looks, self.takes = clock, 0, 0, 0.001

    def count(self, queue_name: str, limit: int) -> int:
        self.looks += 1
        self.clock.now += self.takes
        return min(self.length, limit)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(queue_lengths, "time", clock)
    return clock


@pytest.fixture
def database(clock: Clock) -> Database:
    return Database(clock)


@pytest.fixture
def take(database: Database) -> Callable[..., Full | None]:
    lengths = QueueLengths()

    def taking(jobs: int = 1, name: str = "mail", **options: Any) -> Full | None:
        return lengths.take([Wanted(name, jobs, 10)], database.count, **options)

    return taking


def test_a_process_looks_once_a_second_while_there_is_room(
    take: Any, clock: Clock, database: Database
) -> None:
    for _ in range(10):
        assert take(0) is None
        clock.now += 0.07
    assert database.looks == 1
    clock.now += 0.3
    assert take(0) is None
    assert database.looks == 2


def test_what_it_takes_itself_counts_at_once(take: Any, database: Database) -> None:
    database.length = 3
    assert take(4) is None
    database.length = 7
    assert take(3) is None
    database.length = 10
    assert take().length == 10
    assert database.looks == 1


def test_it_looks_again_before_it_refuses_if_looks_are_cheap(
    take: Any, clock: Clock, database: Database
) -> None:
    assert take(10) is None
    database.length, clock.now = 5, clock.now + 0.02
    assert take(5) is None
    assert database.looks == 2


@pytest.mark.parametrize(("takes", "pause"), [(0.0001, 0.01), (0.01, 0.2), (0.04, 0.74)])
def test_a_full_queue_is_looked_at_the_less_often_the_longer_that_takes(
    take: Any, clock: Clock, database: Database, takes: float, pause: float
) -> None:
    database.length, database.takes = 10, takes
    began = clock.now
    assert take() is not None
    clock.now = began + pause - 0.005
    assert take() is not None
    assert database.looks == 1
    clock.now = began + pause + 0.06
    assert take() is not None
    assert database.looks == 2


def test_jobs_that_are_not_ready_need_room_and_take_none(take: Any, database: Database) -> None:
    database.length = 9
    for _ in range(5):
        assert take(0) is None
    assert take(1) is None
    assert take(0) is not None


def test_room_is_taken_in_all_queues_or_in_none(database: Database) -> None:
    lengths = QueueLengths()
    wanted = [Wanted("a", 2, 10), Wanted("b", 11, 10)]
    full = lengths.take(wanted, database.count)
    assert full is not None
    assert full.wanted == wanted[1]
    assert lengths.take([Wanted("a", 10, 10)], database.count) is None


def test_room_that_is_only_looked_for_stays(take: Any) -> None:
    assert take(10, keep=False) is None
    assert take(11, keep=False) is not None
    assert take(10) is None


def test_others_go_on_with_what_is_known_while_one_thread_looks(clock: Clock) -> None:
    """And do not wait for it: it may wait for a connection that one of them has."""
    lengths, looking, release = QueueLengths(), threading.Event(), threading.Event()

    def slow(queue_name: str, limit: int) -> int:
        looking.set()
        assert release.wait(30)
        return 4

    def refused(queue_name: str, limit: int) -> int:
        raise AssertionError("A second thread looks.")

    wanted = [Wanted("mail", 1, 10)]
    assert lengths.take(wanted, lambda *_: 0) is None
    clock.now += 0.8
    thread = threading.Thread(target=lengths.take, args=(wanted, slow))
    thread.start()
    try:
        assert looking.wait(30)
        assert lengths.take(wanted, refused) is None
    finally:
        release.set()
        thread.join()
    # What was taken during the look may not be in it.
    full = lengths.take([Wanted("mail", 5, 10)], lambda *_: 4)
    assert full is not None
    assert full.length == 6


def test_an_old_length_is_never_used_while_another_thread_looks(clock: Clock) -> None:
    lengths, looking, release = QueueLengths(), threading.Event(), threading.Event()

    def slow(queue_name: str, limit: int) -> int:
        looking.set()
        assert release.wait(30)
        return 0

    wanted = [Wanted("mail", 1, 10)]
    assert lengths.take(wanted, lambda *_: 0) is None
    clock.now += 1.0
    thread = threading.Thread(target=lengths.take, args=(wanted, slow))
    thread.start()
    try:
        assert looking.wait(30)
        clock.now += 0.1
        assert lengths.take(wanted, lambda *_: 10) is not None
    finally:
        release.set()
        thread.join()
    # That look began later.
    assert lengths.take(wanted, lambda *_: 10) is not None


def test_a_look_that_fails_is_repeated(take: Any, database: Database) -> None:
    def failing(queue_name: str, limit: int) -> int:
        raise ConnectionError

    lengths = QueueLengths()
    for _ in range(2):
        with pytest.raises(ConnectionError):
            lengths.take([Wanted("mail", 1, 10)], failing)
    assert lengths.take([Wanted("mail", 10, 10)], database.count) is None


def test_many_queues_are_not_remembered_for_long(clock: Clock, database: Database) -> None:
    lengths = QueueLengths()
    for number in range(3 * queue_lengths.MANY):
        assert lengths.take([Wanted(f"tenant-{number}", 1, 10)], database.count) is None
        assert len(lengths._lengths) <= queue_lengths.MANY + 1
        clock.now += 0.01


def test_a_queue_that_is_looked_at_is_not_forgotten_among_many(
    clock: Clock, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_lengths, "MANY", 2)
    lengths = QueueLengths()

    def count(queue_name: str, limit: int) -> int:
        for number in range(5):
            lengths.take([Wanted(f"tenant-{number}", 1, 10)], database.count)
            clock.now += 2
        return 10

    assert lengths.take([Wanted("mail", 1, 10)], count) is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_knows_nothing_and_waits_for_nobody() -> None:
    known = queue_lengths.lengths_in("default")
    wanted = [Wanted("mail", 1, 10)]
    assert known.take(wanted, lambda *_: 0) is None
    with known._lock:
        pid = os.fork()
        if not pid:
            full = queue_lengths.lengths_in("default").take(wanted, lambda *_: 10)
            os._exit(0 if full is not None else 1)
        assert os.waitpid(pid, 0)[1] == 0


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    queue_lengths.forget()
