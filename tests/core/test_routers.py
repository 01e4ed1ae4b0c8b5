"""The router that keeps the queue in a database of its own."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.db import router

import steady_queue_core
from steady_queue_core.configured_backends import queue_databases
from steady_queue_core.models import Job, Process, ReadyExecution
from steady_queue_core.routers import SteadyQueueRouter

from .samples import OURS

ROUTER = "steady_queue_core.routers.SteadyQueueRouter"


@pytest.fixture
def separate(settings: Any) -> Any:
    """Settings with the router and a queue in the database ``queue``."""
    settings.DATABASE_ROUTERS = [ROUTER]
    settings.TASKS = {
        "default": {**OURS, "OPTIONS": {"database": "queue"}},
        "other": {**OURS, "OPTIONS": {"database": "archive"}},
    }
    return settings


def placed(model: Any, using: str) -> Any:
    instance = model()
    instance._state.db = using
    return instance


def test_our_models_are_read_and_written_there_and_no_others(separate: Any) -> None:
    for model in (Job, ReadyExecution, Process):
        assert router.db_for_read(model) == router.db_for_write(model) == "queue"
    assert router.db_for_read(User) == router.db_for_write(User) == "default"


def test_rows_stay_in_the_database_that_they_came_from(separate: Any) -> None:
    row = placed(Job, "archive")
    assert router.db_for_read(ReadyExecution, instance=row) == "archive"
    assert router.db_for_write(Job, instance=row) == "archive"


def test_tables_are_made_there_and_no_others(separate: Any) -> None:
    allowed = {
        (label, using)
        for label in ("steady_queue", "auth")
        for using in ("default", "queue", "archive", "elsewhere")
        if router.allow_migrate(using, label)
    }
    assert allowed == {
        ("steady_queue", "queue"),
        ("steady_queue", "archive"),
        ("auth", "default"),
        ("auth", "elsewhere"),
    }


def test_relations_with_other_models_are_refused(separate: Any) -> None:
    ours, theirs = placed(Job, "queue"), placed(User, "default")
    assert router.allow_relation(ours, placed(Process, "queue"))
    assert not router.allow_relation(ours, placed(Process, "archive"))
    assert not router.allow_relation(ours, theirs)
    assert not router.allow_relation(theirs, ours)
    # Also within one database: the queue may be moved to another.
    assert not router.allow_relation(ours, placed(User, "queue"))
    assert router.allow_relation(theirs, placed(User, "default"))


def test_the_default_database_is_open_to_all(separate: Any) -> None:
    separate.TASKS = {"default": {**OURS, "OPTIONS": {"database": "default"}}}
    assert router.allow_migrate("default", "auth")
    assert router.allow_migrate("default", "steady_queue")
    assert not router.allow_migrate("queue", "steady_queue")


def test_without_a_named_database_the_router_says_nothing(separate: Any) -> None:
    separate.TASKS = {"default": OURS}
    assert router.db_for_write(Job) == "default"
    assert router.allow_migrate("queue", "steady_queue")


def test_the_module_level_setting_names_it_too(
    separate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steady_queue_core, "database", "queue")
    separate.TASKS = {
        "default": OURS,
        "other": {**OURS, "OPTIONS": {"database": "archive"}},
    }
    assert router.db_for_write(Job) == "queue"
    assert router.allow_migrate("archive", "steady_queue")


def test_wrong_options_are_reported_and_do_not_break_the_project(separate: Any) -> None:
    separate.TASKS = {"default": {**OURS, "OPTIONS": {"databse": "queue"}}}
    assert router.db_for_read(User) == "default"
    assert router.db_for_read(Job) == "default"
    assert router.allow_migrate("default", "auth")


class Elsewhere:
    """A router that splits the queue's tables."""

    def allow_migrate(self, db: str, app_label: str, model_name: str = "", **hints: Any) -> Any:
        return False if model_name in ("job", "pause") else None


@pytest.fixture
def split(settings: Any) -> None:
    settings.DATABASE_ROUTERS = [f"{__name__}.Elsewhere"]
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"database": "default"}}}
    return


@pytest.mark.django_db  # Whoever asks first for the dialect of a database connects to it.
def test_a_router_that_keeps_tables_out_of_the_database_is_an_error(split: None) -> None:
    [problem] = [each for each in run_checks() if each.id == "steady_queue.E009"]
    assert "steady_queue_jobs, steady_queue_pauses" in problem.msg
    assert "'default'" in problem.msg
    assert ROUTER in (problem.hint or "")


def test_a_router_that_derives_from_ours_can_ask_as_django_does(separate: Any) -> None:
    """By position too, as Django's documentation has it."""

    class Ours(SteadyQueueRouter):
        def allow_migrate(
            self, db: str, app_label: str, model_name: str | None = None, **hints: Any
        ) -> bool | None:
            return super().allow_migrate(db, app_label, model_name, **hints)

    assert Ours().allow_migrate("queue", "steady_queue", "job", model=Job) is True
    assert Ours().allow_migrate("default", "steady_queue", "job") is False
    assert Ours().allow_migrate("default", "auth", "user") is None


def test_a_second_backend_with_a_database_leaves_the_default_one_where_it_is(
    separate: Any,
) -> None:
    separate.TASKS = {"default": OURS, "other": {**OURS, "OPTIONS": {"database": "archive"}}}
    assert router.db_for_read(Job) == router.db_for_write(Job) == "default"
    assert queue_databases() == ["default", "archive"]
    allowed = {
        (label, using)
        for label in ("steady_queue", "auth")
        for using in ("default", "archive", "elsewhere")
        if router.allow_migrate(using, label)
    }
    assert allowed == {
        ("steady_queue", "default"),
        ("steady_queue", "archive"),
        ("auth", "default"),
        ("auth", "elsewhere"),
    }
    assert "steady_queue.E009" not in [each.id for each in run_checks()]


def test_a_backend_that_names_no_database_follows_other_routers(separate: Any) -> None:
    separate.DATABASE_ROUTERS = [ROUTER, f"{__name__}.Aside"]
    separate.TASKS = {"default": OURS, "other": {**OURS, "OPTIONS": {"database": "archive"}}}
    assert queue_databases() == ["aside", "archive"]
    assert router.allow_migrate("aside", "steady_queue")
    assert not router.allow_migrate("default", "steady_queue")
    assert router.allow_migrate("aside", "auth")


class Aside:
    """A router of the project."""

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "aside" if model._meta.app_label == "steady_queue" else None
