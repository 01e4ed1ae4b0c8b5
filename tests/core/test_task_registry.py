"""The registry: what a row of the database can choose from."""

from __future__ import annotations

import sys

import pytest

from steady_queue_core.errors import UnregisteredTaskError
from steady_queue_core.tasks.registry import find_task

from . import samples
from .samples import echo

HERE = samples.__name__


@pytest.mark.parametrize(
    "path",
    [
        "os.system", "builtins.eval", "antigravity.fly", f"{HERE}.echo.func",
        f"{HERE}.echo.__globals__", f"{HERE}.no_task", f"{HERE}.Item",
        f"{HERE}.\N{CYRILLIC SMALL LETTER IE}cho", f"{HERE}..echo", f" {HERE}.echo",
        "a..b", "..", ".", "", "echo", "a." * 10_000, "blocked.task",
    ],
    ids=lambda path: path[-24:],
)  # fmt: skip
def test_only_tasks_are_found(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    # What Python keeps of a module that must not be imported.
    monkeypatch.setitem(sys.modules, "blocked", None)  # type: ignore[arg-type]  # As Python does.
    before = set(sys.modules)
    with pytest.raises(UnregisteredTaskError, match="is not registered in this process"):
        find_task(path)
    assert set(sys.modules) == before


def test_finding_a_task_does_not_evaluate_what_stands_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from django.utils.functional import SimpleLazyObject

    import tests.app.tasks as module

    evaluated: list[int] = []
    lazy = SimpleLazyObject(lambda: evaluated.append(1))
    monkeypatch.setattr(module, "lazy", lazy, raising=False)
    with pytest.raises(UnregisteredTaskError):
        find_task("tests.app.tasks.lazy")
    assert not evaluated


def test_a_variant_does_not_take_the_place_of_its_task() -> None:
    echo.using(priority=50)
    assert find_task(f"{HERE}.echo") is echo
