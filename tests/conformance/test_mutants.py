"""The conformance suite is worth something: it fails for each dialect that breaks a promise."""

from __future__ import annotations

import unittest
from functools import wraps
from inspect import signature
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

from steady_queue_core.conformance import DialectConformance
from steady_queue_core.conformance.base import FINGERPRINT
from steady_queue_core.conformance.settle import SettleCases
from steady_queue_core.conformance.text import TextCases
from steady_queue_core.dialects.registry import override
from steady_queue_sqlite import plugin as sqlite

from .mutants import ALL
from .mutants.mutant import Mutant
from .plugins import Plugin, hooks_of, plugin, registry_of

# The database is set up once; the cases themselves empty the tables.
pytestmark = [
    pytest.mark.django_db(transaction=True),
    # A broken dialect may leave connections to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

#: Cases that no hook can break.
BEYOND_HOOKS = {
    # What two rows may exist side by side is decided by the columns, when they are created.
    "test_a_queue_may_be_paused_beside_those_that_look_like_it",
    # There is nothing between SQLite and its file: see ``tests/postgres/test_answer_limits.py``.
    "test_a_server_that_falls_silent_is_lost",
}


def broken_cases(dialect: Plugin, cases: Any, seconds: float) -> dict[str, str]:
    """Run ``cases`` of the suite against a dialect; return the traceback of each that fails."""

    class Suite(DialectConformance, TransactionTestCase):
        databases = {"default"}
        patience = seconds

        def shorten_lock_wait(self, connection: BaseDatabaseWrapper) -> None:
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA busy_timeout = 100")

    result = unittest.TestResult()
    with override(registry_of(dialect)):
        unittest.TestSuite(Suite(case) for case in cases).run(result)
    found = [*result.failures, *result.errors]
    broken = {getattr(test, "_testMethodName", str(test)): text for test, text in found}
    if any(name.startswith("setUpClass") for name in broken):
        return dict.fromkeys(cases, next(iter(broken.values())))
    return broken


@pytest.mark.thorough
@pytest.mark.parametrize(
    "mutant", ALL, ids=lambda mutant: f"{next(iter(mutant.hooks))[13:]}-{mutant.name}"
)
def test_the_suite_fails_for_a_dialect_that(mutant: Mutant) -> None:
    assert set(mutant.cases) == set(broken_cases(mutant.plugin(), mutant.cases, 1.0))


def test_a_clock_that_stands_still_is_told_which_hook_to_implement() -> None:
    [mutant] = [each for each in ALL if each.name == "stands_still_within_a_transaction"]
    [told] = broken_cases(mutant.plugin(), mutant.cases, 1.0).values()
    assert "Implement steady_queue_now with what this database has for" in told


@pytest.mark.thorough
def test_the_suite_passes_for_the_unbroken_dialect() -> None:
    """One case of each kind, run as for a mutant; ``test_sqlite`` has them all."""
    kinds = DialectConformance.__bases__
    cases = [next(name for name in vars(kind) if name.startswith("test_")) for kind in kinds]
    assert broken_cases(plugin("sqlite", hooks_of(sqlite)), cases, 30.0) == {}


def test_the_suite_passes_for_a_dialect_that_does_not_know_fingerprints() -> None:
    known = {**vars(SettleCases), **vars(TextCases)}
    cases = [name for name in known if name.startswith("test_")]
    assert "test_a_failed_row_has_the_fingerprint_of_its_outcome_or_none" in cases
    hooks, lost = hooks_of(sqlite), set[str]()
    for name in [name for name in hooks if "_settle" in name]:
        hooks[name] = _without_fingerprints(hooks[name], lost)
    assert broken_cases(plugin("sqlite", hooks), cases, 30.0) == {}
    assert lost == {FINGERPRINT}


def _without_fingerprints(hook: Any, lost: set[str]) -> Any:
    """Return a hook that stores failures as it did before there was the column."""

    @wraps(hook)  # It is called with the arguments that the hook names.
    def settling(*given: Any) -> Any:
        bound = signature(hook).bind(*given)
        outcomes = bound.arguments["outcomes"]
        lost.update(outcome.fingerprint for outcome in outcomes if outcome.fingerprint)
        bound.arguments["outcomes"] = [each._replace(fingerprint=None) for each in outcomes]
        return hook(*bound.args)

    return settling


def test_every_case_is_failed_by_a_mutant() -> None:
    cases = set(unittest.TestLoader().getTestCaseNames(DialectConformance))
    named = {case for mutant in ALL for case in mutant.cases}
    assert named - cases == set()
    assert cases - named == BEYOND_HOOKS
