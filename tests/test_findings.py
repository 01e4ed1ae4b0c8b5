"""A test of many things calls each of them, and tells all that is wrong."""

from __future__ import annotations

import inspect

import pytest

from .findings import for_each, report


def test_all_findings_are_told() -> None:
    report([])
    with pytest.raises(pytest.fail.Exception) as failed:
        report(["a.md:3: a typo", "b.md:5: another one"])
    assert str(failed.value) == "a.md:3: a typo\nb.md:5: another one\nfindings: 2"


def test_each_case_is_looked_at_and_all_that_fail_are_told() -> None:
    seen = []

    @for_each("number, word", [(1, "one"), (2, "two"), (3, "three")])
    def looks(start: int, number: int, word: str) -> None:
        seen.append(word)
        if number == 2:
            pytest.fail("no even number")
        assert number + start < 3

    assert [*inspect.signature(looks).parameters] == ["start"]
    with pytest.raises(pytest.fail.Exception) as failed:
        looks(start=0)
    assert seen == ["one", "two", "three"]
    for told in ("(2, 'two'): ", "no even number", "(3, 'three'): ", "assert (3 + 0) < 3"):
        assert told in str(failed.value)
    assert "'one'" not in str(failed.value)
