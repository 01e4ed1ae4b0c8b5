"""The arithmetic of rate limits, against a count of what really starts in each window."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple

import pytest

from steady_queue_core.dialects import JobRate
from steady_queue_core.durations import LONGEST
from steady_queue_core.features.rates.pace import LEAST_SLACK, RESOLUTION, Pace
from steady_queue_core.features.rates.turnstile import DESERTED, GRACE, ROUND, Turnstile
from steady_queue_core.timezones import MICROSECOND

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND
RATES = [
    (1, 1, 0), (1, 1, 1), (3, 1, 0), (10, 1, 2), (100, 1, 0), (100, 1, 20), (7, 3, 5),
    (1000, 1, 1), (100, 60, 0), (100, 60, 30), (1, 3600, 0), (1, 3600, 1), (1_000_000, 1, 0),
]  # fmt: skip


def rate(to: int, seconds: float, burst: int = 0) -> JobRate:
    return JobRate("k", to, timedelta(seconds=seconds), burst)


def fullest(starts: list[int], per: int) -> int:
    """Return the most starts in any window, whose ends are part of it."""
    starts = sorted(starts)
    return max(sum(first <= each <= first + per for each in starts) for first in starts)


def turnstile(present: int = NOW, gate: int = 0, line: int = 0, shift: int = 0) -> Turnstile:
    return Turnstile(present, gate, line, shift)


@pytest.mark.parametrize(("to", "seconds", "burst"), RATES)
def test_a_pace_leaves_room_for_starts_that_come_late(to: int, seconds: int, burst: int) -> None:
    pace, per = Pace.of(rate(to, seconds, burst)), seconds * SECOND
    # The most that two starts are nearer to each other than their times at the gate.
    nearer = pace.lateness + RESOLUTION + pace.allowance
    assert pace.time_of(to + burst) > per + nearer
    assert pace.lateness > pace.patience >= 3 * LEAST_SLACK // 8 > 0
    assert pace.allowance >= LEAST_SLACK // 2 - RESOLUTION - 1
    assert pace.time_of(to) >= per


@pytest.mark.parametrize(
    ("to", "seconds", "burst", "share"),
    [
        (100, 1, 20, 1.0),
        (100, 60, 0, 0.997),
        (10, 1, 2, 1.0),
        (10, 1, 0, 0.83),
        (1, 3600, 0, 1.0),
    ],
)
def test_what_a_rate_reaches(to: int, seconds: int, burst: int, share: float) -> None:
    pace = Pace.of(rate(to, seconds, burst))
    assert to * seconds * SECOND / pace.time_of(to * to) == pytest.approx(share, abs=0.004)


def test_the_largest_and_the_smallest_rates_are_numbers_that_columns_hold() -> None:
    for to, per, burst in [
        (1, LONGEST, 0), (1_000_000, LONGEST, 1_000_000), (1_000_000, timedelta(seconds=1), 0),
        (1, timedelta(seconds=1), 1_000_000),
    ]:  # fmt: skip
        at, pace = turnstile(), Pace.of(JobRate("k", to, per, burst))
        for slot in [None, None, NOW, None]:
            turn = at.take_turn(pace, slot)
            assert abs(turn.due) < 2**62
        assert max(at.gate, at.line, at.shift) < 2**62


class Arrival(NamedTuple):
    at: int
    number: int
    slot: int | None = None


class World:
    """Jobs that come, are sent away, come late, start late, and are lost, by chance."""

    def __init__(self, given: JobRate, seed: int) -> None:
        self.pace, self.chance = Pace.of(given), random.Random(seed)
        self.per = given.per // MICROSECOND
        self.gate = self.line = self.shift = 0
        #: Starts that did not take place: when they are given back, and were permitted.
        self.unused: list[tuple[int, int]] = []
        self.starts: list[int] = []
        self.started: list[int] = []
        self.visits = self.stalls = 0

    def delay(self, longest: int) -> int:
        """Return mostly short delays, and now and then a long one."""
        share = self.chance.random() ** self.chance.choice([1, 3, 8])
        return round(longest * share)

    def run(
        self, jobs: int, *, gaps: float = 0.05, lost: float = 0.05, stalls: float = 0.01
    ) -> None:
        at, waiting = NOW, list[Arrival]()
        for number in range(jobs):
            if self.chance.random() < gaps:
                at += self.delay(2 * self.per)
            heapq.heappush(waiting, Arrival(at, number))
        present = stalled_until = NOW
        while waiting:
            arrival = heapq.heappop(waiting)
            if self.chance.random() < stalls:
                self.stalls += 1
                stalled_until = arrival.at + self.delay(3 * SECOND)
            present = max(present, arrival.at, stalled_until)
            self._visit(arrival, present, waiting, lost)

    def _visit(self, arrival: Arrival, present: int, waiting: list[Arrival], lost: float) -> None:
        self.visits += 1
        while self.unused and self.unused[0][0] <= present:
            _, permitted_at = heapq.heappop(self.unused)
            self.gate -= self.pace.left_after(present - permitted_at + RESOLUTION)
        # A database may tell a time that is a little older.
        told = present - self.chance.randrange(RESOLUTION)
        at = Turnstile(told, self.gate, self.line, self.shift)
        turn = at.take_turn(self.pace, arrival.slot)
        self.gate, self.line, self.shift = at.gate, at.line, at.shift
        if not turn.starts:
            assert turn.due > told
            back = turn.due + RESOLUTION + self.delay(50_000)
            heapq.heappush(waiting, Arrival(back, arrival.number, turn.slot))
        elif self.chance.random() < lost:  # It starts too late, and asks again.
            back = present + self.pace.patience + self.delay(SECOND)
            if self.chance.random() < 0.8:  # Nor if its worker is killed.
                heapq.heappush(self.unused, (back - self.delay(SECOND // 10), present))
            heapq.heappush(waiting, Arrival(back, arrival.number, arrival.slot))
        else:  # As late as a worker takes for in time, and as late again unseen.
            self.starts.append(present + self.delay(self.pace.lateness - RESOLUTION))
            self.started.append(arrival.number)


def worlds(jobs: int, **troubles: float) -> Iterator[tuple[JobRate, World]]:
    for seed in range(6):
        for to, seconds, burst in RATES[:-3]:
            world = World(given := rate(to, seconds, burst), seed)
            world.run(jobs, **troubles)
            yield given, world


def test_no_window_ever_has_more_starts_than_it_may() -> None:
    nearly = 0
    for given, world in [*worlds(300), *worlds(300, lost=0.3)]:
        assert len(world.starts) == 300
        most = fullest(world.starts, world.per)
        assert most <= given.to + given.burst, given
        nearly += most == given.to + given.burst
    assert nearly  # The bound is no looser than it has to be.


def test_a_pace_without_room_for_late_starts_would_break_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = Pace.of

    def roomy(given: JobRate) -> Pace:
        pace = of(given)
        return Pace(pace.span, pace.count, pace.allowance + pace.lateness, pace.lateness)

    monkeypatch.setattr(Pace, "of", roomy)
    assert any(
        fullest(world.starts, world.per) > given.to + given.burst for given, world in worlds(300)
    )


def test_giving_back_whole_starts_would_break_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "left_after", lambda pace, waited: pace.time_of(1))
    assert any(
        fullest(world.starts, world.per) > given.to + given.burst
        for given, world in worlds(300, lost=0.3)
    )


def test_nobody_is_sent_away_again_and_again() -> None:
    """Once to be given a slot, once to start, and once more for each time that all were late."""
    for given, world in worlds(1000, lost=0.0, stalls=0.0):
        assert world.visits <= 2 * len(world.starts), given
    for given, world in worlds(1000, lost=0.02, stalls=0.002):
        assert world.visits <= (3.5 + world.stalls) * len(world.starts), given


def test_jobs_start_in_the_order_in_which_they_came() -> None:
    for given, world in worlds(300, lost=0.0, stalls=0.0):
        behind = max((index - number for index, number in enumerate(world.started)), key=abs)
        # As far as they are late by more than the next one.
        assert abs(behind) <= 1 + (50_000 + ROUND) // world.pace.time_of(1), given


@pytest.mark.parametrize(("to", "burst"), [(100, 20), (20, 4)])
def test_jobs_that_were_all_late_start_in_their_order(
    monkeypatch: pytest.MonkeyPatch, to: int, burst: int
) -> None:
    """As when a dispatcher comes a second late: whoever comes at the slot that it was given before
    all were put off must not start ahead of those that were sent away."""
    world = World(rate(to, 1, burst), seed=1)
    visit = world._visit

    def visit_late(arrival: Arrival, present: int, waiting: list[Arrival], lost: float) -> None:
        if arrival.slot is not None and present < NOW + SECOND:
            heapq.heappush(waiting, arrival._replace(at=NOW + SECOND))
        else:
            visit(arrival, present, waiting, lost)

    monkeypatch.setattr(world, "_visit", visit_late)
    world.run(300, gaps=0.0, lost=0.0, stalls=0.0)
    behind = [abs(index - number) for index, number in enumerate(world.started)]
    assert sum(behind) / 300 < 5


def test_a_rate_is_reached_while_there_is_work() -> None:
    world = World(rate(100, 1, 20), seed=1)
    world.run(3000, gaps=0.0, lost=0.01, stalls=0.0)
    assert 3000 / (max(world.starts) - min(world.starts)) * SECOND > 95


def test_a_burst_starts_at_once_and_the_others_get_the_next_slots() -> None:
    at, pace = turnstile(), Pace.of(rate(10, 60, 4))
    turns = [at.take_turn(pace, None) for _ in range(8)]
    assert [turn.starts for turn in turns] == [True] * 4 + [False] * 4
    dues = [turn.due for turn in turns[4:]]
    assert [later - former for former, later in pairwise(dues)] == [6 * SECOND] * 3
    assert 0 < dues[0] - NOW < SECOND


def test_a_newcomer_does_not_overtake_those_that_have_slots() -> None:
    pace = Pace.of(rate(10, 60, 4))
    at = turnstile(gate=NOW - SECOND, line=NOW + 30 * SECOND)
    turn = at.take_turn(pace, None)
    assert (turn.starts, turn.slot) == (False, NOW + 30 * SECOND)
    assert at.take_turn(pace, NOW - 1).starts


def test_where_the_gate_is_behind_all_slots_are_put_off_alike() -> None:
    pace = Pace.of(rate(1, 1, 0))
    behind = NOW + pace.time_of(1) + pace.allowance // 2
    at = turnstile(gate=behind, line=NOW + 100 * SECOND)
    late = behind - pace.allowance - NOW
    first = at.take_turn(pace, NOW)
    assert (first.starts, first.slot, at.shift) == (False, NOW, late)
    assert 0 <= first.due - (NOW + late) < ROUND
    # The next one comes a second later, for a slot that is a second later.
    later = turnstile(NOW + SECOND, at.gate, at.line, at.shift)
    assert 0 <= later.take_turn(pace, None).due - (NOW + 100 * SECOND + late) < ROUND


def test_a_job_that_is_late_itself_puts_off_nobody() -> None:
    pace = Pace.of(rate(1, 1, 0))
    at = turnstile(gate=NOW + 2 * SECOND, line=NOW + 5 * SECOND)
    at.take_turn(pace, NOW - GRACE + 1)
    assert at.shift < 2 * SECOND
    before = at.shift
    turn = at.take_turn(pace, NOW - GRACE - SECOND * 2)  # Too late: to the end of the line.
    assert (turn.slot, at.shift) == (NOW + 5 * SECOND, before)


def test_a_line_whose_jobs_are_gone_is_given_up() -> None:
    pace = Pace.of(rate(1, 1, 0))
    gone = NOW - pace.time_of(1) - DESERTED
    year = NOW + 365 * 86_400 * SECOND
    assert not turnstile(gate=gone, line=year).take_turn(pace, None).starts
    at = turnstile(gate=gone - 1, line=year)
    assert at.take_turn(pace, None).starts
    assert at.take_turn(pace, None).due < NOW + 2 * SECOND


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, -(2**63), NOW, NOW + 10**15])
def test_numbers_that_cannot_be_keep_nobody_waiting(number: int) -> None:
    pace = Pace.of(rate(10, 1, 0))
    for gate, line, shift in [(number, 0, 0), (0, number, 0), (0, 0, number), (number,) * 3]:
        at = turnstile(gate=gate, line=line, shift=shift)
        for slot in (None, number, NOW):
            turn = at.take_turn(pace, slot)
            if not turn.starts:
                assert turn.due > NOW
        assert at.gate <= NOW + SECOND
        assert max(abs(at.gate), abs(at.line), abs(at.shift)) < 2**63


def test_a_clock_that_is_set_back_stops_nobody_for_longer_than_one_start() -> None:
    pace = Pace.of(rate(1, 1, 0))
    at = turnstile(gate=NOW + 3600 * SECOND, line=0)
    turn = at.take_turn(pace, None)
    assert not turn.starts
    assert turn.due - NOW <= pace.time_of(1) + ROUND
