"""How many jobs a worker claims while most of them are sent away by their rates."""

from __future__ import annotations

from steady_queue_core.features.rates.excess import MOST, SOON, Excess


def sending_away(turns: int) -> Excess:
    """Return what a worker knows after so many turns in which it sent all jobs away for long."""
    excess = Excess()
    for _ in range(turns):
        claimed = 3 + excess.number
        excess.note(claimed, [SOON] * claimed, is_full=False)
        assert excess.number <= MOST
    return excess


def test_a_worker_claims_more_while_jobs_are_sent_away_for_long() -> None:
    excess, claimed = Excess(), 3
    turns = 0
    while claimed < 6000:
        excess = sending_away(turns)
        claimed += 3 + excess.number
        turns += 1
    assert turns < 30


def test_a_worker_claims_no_more_than_it_has_room_for_once_it_is_full() -> None:
    excess = sending_away(9)
    assert excess.number == MOST
    assert excess.sent_away == 3 + MOST
    excess.note(3 + MOST, [SOON] * MOST, is_full=True)
    assert excess.number == 0


def test_jobs_that_come_back_soon_or_are_few_among_others_change_nothing() -> None:
    excess = Excess()
    excess.note(10, [SOON / 2] * 10, is_full=False)
    assert (excess.number, excess.sent_away) == (0, 0)
    excess.note(10, [SOON] * 4, is_full=False)
    assert (excess.number, excess.sent_away) == (0, 4)
