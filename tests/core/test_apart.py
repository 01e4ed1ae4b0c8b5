"""Outcomes that are stored one by one, since the database refuses one of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.db import DataError, IntegrityError

from steady_queue_core.dialects import ClaimedJob, Ending, Outcome
from steady_queue_core.processes.base.database import Unavailable
from steady_queue_core.processes.worker.apart import MOST_BYTES, settle_apart, within_bounds
from steady_queue_core.processes.worker.attempt import RunResult

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLAIM = ClaimedJob(
    job_id=1, token=1, queue_name="default", rank=0, task_path="shop.tasks.pay",
    backend_name="default", arguments="{}", attempts=0, max_attempts=1, enqueued_at=NOW,
    claimed_at=NOW, worker_ids=None, errors=None, started_at=None,
)  # fmt: skip
REFUSED = Unavailable(0.0, lost=True, refused=True)
ERRORS = [
    DataError("no"), IntegrityError("no"), OverflowError("no"), MemoryError("no"),
    UnicodeEncodeError("latin-1", "x", 0, 1, "no"), RecursionError("no"), REFUSED,
]  # fmt: skip


def failed(message: str = "boom", **fields: str) -> RunResult:
    return RunResult(Outcome(Ending.FAILED, 1, 1, "default", 0, message=message, **fields))


def stored(result: RunResult, refuses: Callable[[Outcome], bool], error: Exception) -> Outcome:
    """Return what a database stores that refuses some outcomes."""

    def settle(each: RunResult) -> set[int]:
        if refuses(each.outcome):
            raise error
        return {1}

    found, held = settle_apart(result, CLAIM, "worker-1", settle)
    assert held == {1}
    return found.outcome


@pytest.mark.parametrize("error", ERRORS, ids=lambda each: type(each).__name__)
def test_text_that_is_refused_is_stored_in_ascii(error: Exception) -> None:
    outcome = stored(failed("Größe 💥"), lambda each: not each.message.isascii(), error)
    assert outcome.message == "Gr\\xf6\\xdfe \\U0001f4a5"


@pytest.mark.parametrize("error", ERRORS, ids=lambda each: type(each).__name__)
def test_an_outcome_that_is_refused_in_any_form_fails_its_job(error: Exception) -> None:
    outcome = stored(failed(), lambda each: each.message == "boom", error)
    assert outcome.ending is Ending.FAILED
    assert outcome.exception_class.endswith(type(error).__name__)


@pytest.mark.parametrize("error", ERRORS, ids=lambda each: type(each).__name__)
def test_a_job_of_which_nothing_is_taken_is_told_of(error: Exception) -> None:
    with pytest.raises(type(error)):
        stored(failed(), lambda each: True, error)


def test_what_has_succeeded_fails_only_for_its_data() -> None:
    """A right that is missing, for example, is no fault of the job."""
    result = RunResult(Outcome(Ending.FINISHED, 1, 1, "default", 0, return_value="1"))
    with pytest.raises(Unavailable):
        stored(result, lambda each: each.has_succeeded, REFUSED)
    outcome = stored(result, lambda each: each.has_succeeded, DataError("no"))
    assert outcome.ending is Ending.FAILED


def test_an_outage_is_no_refusal() -> None:
    tried = []

    def settle(each: RunResult) -> set[int]:
        tried.append(each)
        raise Unavailable(0.0, lost=True)

    with pytest.raises(Unavailable):
        settle_apart(failed("💥"), CLAIM, "worker-1", settle)
    assert len(tried) == 1


def test_a_settlement_stores_no_more_than_a_server_takes_in_time() -> None:
    large, small = failed(return_value="x" * (MOST_BYTES // 2)), failed()
    assert within_bounds([]) == []
    assert within_bounds([small] * 500) == [small] * 500
    assert within_bounds([small, large, large]) == [small, large]
    huge = failed(return_value="x" * 2 * MOST_BYTES)
    assert within_bounds([huge, small]) == [huge]
