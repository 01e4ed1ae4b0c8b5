"""How many jobs a worker claims while most of them are sent away by their rates."""

from __future__ import annotations

from steady_queue_core.processes.worker.excess import MOST, Excess


def test_a_worker_claims_more_while_jobs_are_sent_away_and_there_is_room_for_the_others() -> None:
    excess, claimed = Excess(), 3
    turns = 0
    while turns * MOST + claimed < 6000:
        excess.note(claimed=3 + excess.number, sent_away=3 + excess.number, fits=True)
        claimed += excess.number
        turns += 1
        assert excess.number <= MOST
    assert turns < 30


def test_a_worker_claims_no_more_than_it_has_room_for_once_the_others_are_over() -> None:
    excess = Excess()
    for _ in range(9):
        excess.note(claimed=3, sent_away=3, fits=True)
    assert excess.number == MOST
    given_back = 0
    while excess.number:
        given_back += excess.number
        excess.note(claimed=3 + excess.number, sent_away=0, fits=False)
    assert given_back < 2 * MOST
    excess.note(claimed=3, sent_away=0, fits=True)
    assert (excess.number, excess.sent_away) == (0, 0)


def test_few_that_are_sent_away_among_others_change_nothing() -> None:
    excess = Excess()
    excess.note(claimed=10, sent_away=4, fits=True)
    assert excess.number == 0
