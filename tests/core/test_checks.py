"""``manage.py check``: what it says of recurring tasks, backends, and where tasks stand."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import INFO
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connections

from steady_queue_core import recurring
from steady_queue_core.checks import (
    check_configuration,
    check_dialects,
    check_framework,
    check_pools,
    check_recurring_tasks,
    check_start,
    check_task_modules,
)
from steady_queue_core.checks import settings as settings_checks
from steady_queue_core.dialects import ProcessIdentity, QueueSelector, dialect_for
from steady_queue_core.errors import DialectUnsupported
from steady_queue_core.schedules import definition as recurring_task
from steady_queue_core.tasks import registry

from .samples import OURS, backend, configured, nothing

TASKS = """
from steady_queue_core import recurring, task

@task
def work(): ...

{recurring}
"""


@pytest.fixture(autouse=True)
def _empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurring_task, "_registry", {})


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "schedule='99 * * * *'",
            "the recurring task 'k': the cron expression '99 .* is not usable",
        ),
        ("schedule='0 0 30 2 *'", "the recurring task 'k': .* matches no date"),
        ("schedule='@daily', timezone='Mars'", "'k': the time zone 'Mars' is not known"),
        ("schedule='@daily', args=[1]", "'k': .* cannot be called with its arguments"),
    ],
)
def test_a_task_module_with_a_schedule_that_cannot_be_used_is_an_error(
    code: str, message: str, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TASKS.format(recurring=f"recurring(key='k', {code})(work)")
    [found] = check_module(text, tmp_path, settings, monkeypatch)
    assert found.id == "steady_queue.E005"
    assert "STEADY_QUEUE['task_modules']: 'night_shift' cannot be imported: " in found.msg
    assert re.search(message, found.msg)


def test_a_key_that_is_used_twice_is_an_error(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recurring(schedule="@daily", key="k")(nothing)
    text = TASKS.format(recurring="recurring(key='k', schedule='@hourly')(work)")
    [found] = check_module(text, tmp_path, settings, monkeypatch)
    assert found.id == "steady_queue.E005"
    assert "the recurring key 'k' is used twice" in found.msg


def test_task_modules_that_are_in_order_are_imported_and_nothing_is_said(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TASKS.format(recurring="recurring(key='k', schedule='@hourly')(work)")
    assert check_module(text, tmp_path, settings, monkeypatch) == []
    assert recurring_task.is_registered("k")


def test_a_recurring_task_that_nobody_would_schedule_is_a_warning(
    several_backends: None,
) -> None:
    recurring(schedule="@daily", key="ours")(nothing.using(backend="second"))
    recurring(schedule="@daily", key="lost")(nothing.using(backend="dummy"))
    [found] = check_recurring_tasks(None)
    assert found.id == "steady_queue.W010"
    assert "'lost' is never scheduled: its backend 'dummy' is not one of Steady Qu" in found.msg


def test_schedules_that_mean_something_else_than_in_the_original_are_named() -> None:
    recurring(schedule="0 0 13 * 5", key="either")(nothing)
    recurring(schedule="0 0 * * 0-0/2,3", key="sunday")(nothing)
    for number, schedule in enumerate(["0 0 13 * *", "0 0 */2 * 1", "@weekly", "0 0 ? * L5"]):
        recurring(schedule=schedule, key=f"same {number}")(nothing)
    recurring(schedule=timedelta(minutes=1), key="interval")(nothing)
    either, sunday = check_recurring_tasks(None)
    assert (either.id, either.level) == ("steady_queue.I001", INFO)
    assert "'either', schedule '0 0 13 * 5': a day that matches '13' or '5'" in either.msg
    assert "in '0-0/2,3' a range from Sunday to Sunday is one day" in sunday.msg


def test_a_schedule_that_is_over_is_named(several_backends: None) -> None:
    past, future = datetime(2001, 1, 1, tzinfo=UTC), datetime(2901, 1, 1, tzinfo=UTC)
    recurring(schedule=past, key="once")(nothing)
    recurring(schedule=timedelta(minutes=1), key="ended", ends_at=past)(nothing)
    recurring(schedule=future, key="in time")(nothing)
    recurring(schedule="@daily", key="going on", starts_at=past, ends_at=future)(nothing)
    recurring(schedule="@daily", key="to begin", starts_at=future, repeats=1)(nothing)
    ended, once = check_recurring_tasks(None)
    assert (ended.id, ended.level) == (once.id, once.level) == ("steady_queue.I002", INFO)
    assert ended.msg == (
        "The recurring task 'ended', schedule 'every minute', has no run from now on."
    )
    assert "'once', schedule 'at 2001-01-01T00:00:00+00:00'" in once.msg


def test_a_project_under_test_without_a_queue_is_not_warned(
    several_backends: None, settings: Any
) -> None:
    recurring(schedule="@daily", key="k")(nothing.using(backend="dummy"))
    settings.TASKS = {"default": settings.TASKS["dummy"]}
    assert check_recurring_tasks(None) == []


def test_a_backend_that_cannot_be_imported_is_an_error_that_names_its_alias(settings: Any) -> None:
    settings.TASKS = {"default": OURS, "mail": {"BACKEND": "no.such.Backend"}, "odd": {}}
    [found] = check_configuration(None)
    assert found.id == "steady_queue.E004"
    assert found.msg.startswith("TASKS['mail']['BACKEND'] cannot be used: Could not find backend")
    assert check_dialects(None) == []
    settings.TASKS = {"default": OURS, "odd": {}}
    [found] = check_configuration(None)
    assert found.msg == "TASKS['odd'] has no 'BACKEND'."


def test_the_command_names_a_backend_that_cannot_be_imported(settings: Any) -> None:
    settings.TASKS = {"default": OURS, "mail": {"BACKEND": "no.such.Backend"}}
    with pytest.raises(CommandError, match=r"^TASKS\['mail'\]\['BACKEND'\] cannot be used: "):
        call_command("steady_queue", skip_checks=False)


WITHOUT_FRAMEWORK = """
import importlib.util, sys

find_spec = importlib.util.find_spec
names = {"django.tasks", "django_tasks"}
importlib.util.find_spec = lambda name, *rest: None if name in names else find_spec(name, *rest)
sys.modules.update(dict.fromkeys(names))  # None: it cannot be imported.

from django.conf import settings
from django.core.management import execute_from_command_line

settings.configure(
    INSTALLED_APPS=["steady_queue_core", "night_shift"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    TASKS={"default": {"BACKEND": "steady_queue_core.backend.SteadyQueueBackend"}},
)
execute_from_command_line(["manage.py", "check"])
"""


def test_a_missing_task_framework_is_an_error_of_the_checks(tmp_path: Path) -> None:
    (tmp_path / "night_shift").mkdir()
    (tmp_path / "night_shift" / "__init__.py").touch()
    (tmp_path / "night_shift" / "tasks.py").write_text("from steady_queue_core import task\n")
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_FRAMEWORK], cwd=tmp_path, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert result.returncode == 1
    assert "(steady_queue.E003) This Django has no django.tasks" in result.stderr
    assert "Traceback" not in result.stderr


def check_module(
    text: str, folder: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> list[Any]:
    """Return what is said of a project with such a task module."""
    (folder / "night_shift.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "night_shift", raising=False)
    settings.STEADY_QUEUE = {"task_modules": ["night_shift"]}
    try:
        return list(check_recurring_tasks(None))
    finally:
        sys.modules.pop("night_shift", None)


# --- where tasks stand ----------------------------------------------------------------------------


def left_out() -> list[str]:
    return [each.msg.split("'")[1] for each in check_task_modules(None) if each.id[-4:] == "W011"]


@pytest.fixture
def shop(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with tasks, as ``startapp`` leaves it: nobody has installed it."""
    settings.BASE_DIR = tmp_path
    package = tmp_path / "corner_shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "tasks.py").write_text(TASKS.format(recurring=""))
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    yield package
    for name in ("corner_shop", "corner_shop.tasks"):
        sys.modules.pop(name, None)


def test_tasks_of_an_app_that_is_not_installed_are_warned_of(shop: Path, settings: Any) -> None:
    assert left_out() == ["corner_shop.tasks"]
    [found] = check_task_modules(None)
    assert found.hint == (
        "Add 'corner_shop' to INSTALLED_APPS, or 'corner_shop.tasks' to "
        "STEADY_QUEUE['task_modules']."
    )
    settings.STEADY_QUEUE = {"task_modules": ["corner_shop.tasks"]}
    assert left_out() == []
    settings.STEADY_QUEUE = {}
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "corner_shop"]
    assert left_out() == []


def test_modules_that_were_imported_from_elsewhere_are_warned_of(shop: Path) -> None:
    (shop / "jobs.py").write_text((shop / "tasks.py").read_text())
    (shop / "tasks.py").unlink()
    assert left_out() == []
    import_module("corner_shop.jobs")
    assert left_out() == ["corner_shop.jobs"]


@pytest.mark.parametrize(
    "text", ["def task(): ...", "import steady_queue_core", "not Python", "\0"]
)
def test_modules_without_tasks_are_not(shop: Path, text: str) -> None:
    (shop / "tasks.py").write_text(text)
    assert left_out() == []


def test_a_project_that_runs_no_queue_is_not_warned(
    shop: Path, several_backends: None, settings: Any
) -> None:
    settings.TASKS = {"default": settings.TASKS["dummy"]}
    assert left_out() == []


@pytest.mark.parametrize(
    ("queues", "warned"),
    [
        (["*"], False), (["mail"], False), (["mails"], True), (["ma*", "x"], False),
        (["x*", "y"], True), (["reports"], False), (["known"], False),
    ],
)  # fmt: skip
def test_a_worker_without_tasks_is_warned_of(
    queues: list[str], warned: bool, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_registered", {"a": configured, "b": nothing})
    recurring(schedule="@daily", key="k", queue_name="reports")(nothing)
    settings.TASKS = {"default": {**OURS, "QUEUES": ["known", "reports", "mail", "default"]}}
    if queues != ["known"]:
        settings.TASKS = {"default": OURS}
    settings.STEADY_QUEUE = {"workers": [{"queues": queues}, {"queues": "*"}]}
    found = [each for each in check_task_modules(None) if each.id == "steady_queue.W012"]
    assert [each.msg for each in found] == [
        f"No task uses the queues {', '.join(map(repr, queues))} of a worker in STEADY_QUEUE."
    ] * warned


def test_a_backend_without_the_app_is_an_error(settings: Any) -> None:
    settings.INSTALLED_APPS = [
        name for name in settings.INSTALLED_APPS if name != "steady_queue_core"
    ]
    settings.TASKS = {**settings.TASKS}  # For a backend that has not seen the app.
    [found] = backend().check()
    assert (found.id, "'steady_queue_core' to INSTALLED_APPS" in found.hint) == (
        "steady_queue.E010",
        True,
    )
    with pytest.raises(ImproperlyConfigured, match="Add 'steady_queue_core' to INSTALLED_APPS"):
        nothing.enqueue()


@pytest.mark.parametrize(
    ("pool", "workers", "mode", "found"),
    [
        (None, [{"threads": 50}], "fork", None),
        (False, [{"threads": 50}], "fork", None),
        (True, [{"threads": 3, "processes": 9}], "fork", None),
        (True, [{"threads": 4}], "fork", "at most 4 connections, but a worker has 4 threads"),
        ({}, [{"threads": 4}], "fork", None),  # Django takes an empty dict for no pool.
        ({"timeout": 5}, [{"threads": 4}], "fork", "at most 4 connections, but a worker has 4"),
        ({"min_size": 2}, [{"threads": 3}], "fork", "at most 2 connections, but a worker has 3"),
        ({"min_size": 2, "max_size": 8}, [{"threads": 7}], "fork", None),
        (
            {"max_size": 8}, [{"threads": 2}, {"threads": 8}], "fork",
            "at most 8 connections, but a worker has 8 threads",
        ),
        ({"max_size": 8}, [{"threads": 5}, {"threads": 3}], "fork", None),
        (
            {"max_size": 8}, [{"threads": 5}, {"threads": 3}], "async",
            "at most 8 connections, but all workers together have 8 threads",
        ),
        ({"max_size": "8"}, [{"threads": 50}], "fork", None),
        (True, [{"threads": 50, "executor": "processes"}], "fork", None),
        (True, [], "fork", None),
    ],
)  # fmt: skip
def test_a_pool_smaller_than_a_worker_needs_is_warned_of(
    settings: Any, monkeypatch: pytest.MonkeyPatch, pool: Any, workers: Any, mode: str, found: Any
) -> None:
    settings.TASKS = {"default": OURS}  # A backend of its own, which remembers its database.
    settings.STEADY_QUEUE = {"workers": workers, "supervisor_mode": mode}
    options = {} if pool is None else {"pool": pool}
    pooled = {**connections.settings["default"], "OPTIONS": options}
    monkeypatch.setitem(connections.settings, "default", pooled)
    messages = [each for each in check_pools(None) if "'default'" in each.msg]
    assert [each.id for each in messages] == ["steady_queue.W014"] * bool(found)
    for message in messages:
        assert found in message.msg
        assert "['pool']['max_size']" in message.hint


def test_exclusions_are_refused_where_the_dialect_would_ignore_them(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TASKS = {"default": OURS}
    dialect, connection = dialect_for("default"), connections["default"]
    settings.STEADY_QUEUE = {"workers": [{"queues": "a"}, {"queues": "*,!mail*"}]}
    assert check_dialects(None) == []
    monkeypatch.setattr(dialect, "info", replace(dialect.info, excludes_queues=False))
    message = "The dialect 'sqlite' cannot exclude queues: name the queues of the worker instead."
    assert [(each.id, each.msg) for each in check_start(None)] == [("steady_queue.E001", message)]
    assert [(each.id, each.msg) for each in check_dialects(None)] == [
        ("steady_queue.W023", message)
    ]
    worker, selector = ProcessIdentity(1, "worker-1"), QueueSelector.of(["!mail*"])
    outcome: Any = None
    for claim in (
        lambda: dialect.claim(connection, worker, selector, 1),
        lambda: dialect.settle_and_claim(connection, [outcome], worker, selector, 1),
    ):
        with pytest.raises(DialectUnsupported, match="cannot exclude queues"):
            claim()


@pytest.mark.parametrize("is_distribution", [True, False])
def test_only_the_distribution_of_that_name_is_in_the_way(
    is_distribution: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project may have a folder ``steady_queue`` of its own, which does no harm."""
    (tmp_path / "steady_queue").mkdir()
    if is_distribution:
        metadata = tmp_path / "steady_queue-0.3.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: steady-queue\n")
        (metadata / "top_level.txt").write_text("steady_queue\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = [each.id for each in check_framework(None)]
    assert found == (["steady_queue.E007"] if is_distribution else [])


def test_the_metadata_of_all_distributions_are_not_read_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes a tenth of a second, or many, for each command of manage.py."""
    monkeypatch.setattr(settings_checks, "packages_distributions", pytest.fail)
    assert check_framework(None) == []
