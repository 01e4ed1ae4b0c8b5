"""One test that looks at many things, and tells all that is wrong with them.

That is for what has no state: pages, names, tables of values. What needs a database, or fixtures of
its own, is parametrized.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from reprlib import repr as short
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
    arguments, rows = names.split(", "), [*cases]
    assert rows, "no case to look at"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def failures(fixtures: dict[str, Any]) -> Iterator[str]:
            for row in rows:
                values = row if len(arguments) > 1 else [row]
                try:
                    test(**fixtures, **dict(zip(arguments, values, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    told = pytest.ExceptionInfo.from_exception(error).getrepr(style="short")
                    yield f"{short(row)}: {told}"

        @wraps(test)
        def of_all(**fixtures: Any) -> None:
            report(failures(fixtures))

        signature = inspect.signature(test)
        others = [each for each in signature.parameters.values() if each.name not in arguments]
        of_all.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]  # inspect reads it
        return of_all

    return decorate
