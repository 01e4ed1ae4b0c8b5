"""One test that looks at many things, and names all that are wrong with them.

That is for what has no state: tables of values, names, pages. What needs a database or other
things of its own is parametrized.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest


def report(findings: Iterable[str]) -> None:
    """Fail with all findings, if there are any."""
    if found := [*findings]:
        pytest.fail("\n".join([*found, f"findings: {len(found)}"]), pytrace=False)


def for_each(
    names: str, cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test for each case, like ``pytest.mark.parametrize``, but in one item of pytest."""
    given, told = names.split(", "), [*cases]
    assert told, "a test of no case"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def of_all(*args: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True
            rows = [case if len(given) > 1 else (case,) for case in told]
            failures = (
                _failure(
                    lambda row=row: test(*args, **fixtures, **dict(zip(given, row, strict=True)))
                )
                for row in rows
            )
            report(f"{case!r}: {each}" for case, each in zip(told, failures, strict=True) if each)

        signature = inspect.signature(test)
        fixtures = [each for each in signature.parameters.values() if each.name not in given]
        of_all.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return of_all

    return decorate


def _failure(call: Callable[[], None]) -> str | None:
    try:
        call()
    except (Exception, pytest.fail.Exception) as error:
        return str(pytest.ExceptionInfo.from_exception(error).getrepr(style="short"))
    return None
