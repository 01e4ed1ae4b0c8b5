"""The judge of the faults on clusters, and the table that it fills."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from .acknowledgements import Acknowledgements
from .effects import Effect
from .judge import SECOND, Verdict, judge
from .table import HEAD, Row, render
from .tables import Tables


def run(number: int, job: str = "", kind: str = "plain", at: float = 0, end: float = 1) -> list:
    """Return the two lines of a job that began and ended at these seconds."""
    name = job or str(number)
    return [
        Effect(kind, number, name, "start", 1, int(at * SECOND)),
        Effect(kind, number, name, "end", 1, int(end * SECOND)),
    ]


def promised(*numbers: int, retried: tuple[int, ...] = ()) -> Acknowledgements:
    return Acknowledgements({each: str(each) for each in numbers}, Counter(retried))


def broken(effects: list[Effect], given: Acknowledgements, tables: Tables | None = None) -> dict:
    return judge(effects, given, tables or Tables()).broken


def test_jobs_that_run_once_are_in_order() -> None:
    assert broken([*run(1), *run(2)], promised(1, 2)) == {}


def test_an_acknowledged_job_that_does_not_end_is_lost() -> None:
    assert broken([*run(1), *run(2)[:1]], promised(1, 2, 3)) == {"lost": 2}


def test_a_job_that_starts_again_runs_twice() -> None:
    assert broken([*run(1), *run(1)], promised(1)) == {"twice": 1}


def test_a_retried_call_may_be_stored_twice_unless_it_has_a_key() -> None:
    two = [*run(1, "a"), *run(1, "b")]
    found = judge(two, promised(1, retried=(1,)), Tables())
    assert (found.broken, found.stored_twice) == ({}, 1)
    assert broken(two, promised(1)) == {"doubled": 1}
    keyed = [*run(1, "a", "unique"), *run(1, "b", "unique")]
    assert broken(keyed, promised(1, retried=(1,))) == {"doubled": 1}


def test_more_limited_jobs_at_once_than_allowed_are_over_the_limit() -> None:
    two = [*run(1, kind="limited", end=2), *run(2, kind="limited", at=1, end=3)]
    assert broken(two, promised()) == {}
    assert broken([*two, *run(3, kind="limited", at=1.5, end=3)], promised()) == {"over_limit": 1}


def test_a_limited_job_may_begin_when_another_one_ends() -> None:
    one_by_one = [line for at in range(9) for line in run(at, kind="limited", at=at, end=at + 1)]
    assert broken([*one_by_one, *run(9, kind="limited", end=9)], promised()) == {}


def test_runs_of_a_schedule_are_counted_by_the_database() -> None:
    slots = [*run(0, "a", "slot"), *run(0, "b", "slot")]
    assert broken(slots, promised(), Tables(runs=1)) == {"slots_doubled": 1}
    found = judge(slots, promised(), Tables(runs=2, span=9))
    assert (found.broken, found.slots_missed) == ({}, 8)


@pytest.mark.parametrize("name", ["failed", "stateless", "unfinished"])
def test_what_the_database_says_counts(name: str) -> None:
    assert broken([], promised(), replace(Tables(), **{name: 3})) == {name: 3}


def test_supervisors_end_in_good_order() -> None:
    found = judge([], promised(), Tables(), exits=[0, 1, -9])
    assert found.broken == {"supervisors_ended": 2}


def test_silence_and_promotion_are_measured_from_the_fault_on() -> None:
    effects = [*run(1, at=0), *run(2, at=5), *run(3, at=6), *run(4, at=9)]
    found = judge(effects, promised(), Tables(), broken_at=6 * SECOND, promoted_at=8 * SECOND)
    assert (found.silence, found.after_promotion) == (3, 1)


def verdict(**found: int) -> Verdict:
    return replace(judge([], promised(), Tables()), **found)


def test_the_table_says_what_was_broken_and_what_was_not_run() -> None:
    rows = [
        Row("galera", "kill", verdict()),
        Row("galera", "alter", verdict(lost=2, twice=1)),
        Row("patroni", "kill", problem="not run: no haproxy: install it"),
    ]
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in
             render(rows).splitlines()]  # fmt: skip
    assert lines[0] == list(HEAD)
    assert [line[-1] for line in lines[2:]] == [
        "kept", "lost: 2, twice: 1", "not run: no haproxy: install it",
    ]  # fmt: skip
    assert [row.is_good for row in rows] == [True, False, True]
    assert not Row("galera", "kill", verdict(), "waited 9 s", is_failed=True).is_good
