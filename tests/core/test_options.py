"""``TASKS[alias]["OPTIONS"]``."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

import steady_queue_core
from steady_queue_core import retries
from steady_queue_core.backend_options import BackendOptions
from steady_queue_core.configuration import ConfigurationError

from ..findings import for_each


def five_seconds(exception: BaseException, task_result: Any) -> float:
    return 5


def problems_of(mapping: object, alias: str = "default") -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        BackendOptions.parse(alias, mapping)
    return caught.value.problems


@pytest.mark.parametrize("nothing", [None, {}])
def test_without_options_the_defaults_hold(nothing: object) -> None:
    options = BackendOptions.parse("default", nothing)
    assert options == BackendOptions()
    assert options.database is None
    assert options.max_attempts == 1
    assert options.preserve_finished_jobs is True
    assert options.clear_finished_jobs_after == timedelta(days=1)
    assert options.clear_failed_jobs_after is None
    assert options.max_payload_bytes == 1024 * 1024
    assert options.max_payload_depth == 64
    assert options.enqueue_on_commit is False
    assert options.unknown_task_patience == timedelta(minutes=10)
    assert options.middleware == ()
    assert options.error_reporter is None
    assert options.resolve_backoff() is retries.DEFAULT


def test_every_option_is_read() -> None:
    options = BackendOptions.parse(
        "mail",
        {
            "database": "queue",
            "max_attempts": 5,
            "backoff": five_seconds,
            "preserve_finished_jobs": False,
            "clear_finished_jobs_after": 3600,
            "clear_failed_jobs_after": timedelta(days=90),
            "expires": 7200,
            "timeout": 30,
            "timeout_grace": 0,
            "max_payload_bytes": 1000,
            "max_payload_depth": 8,
            "unknown_task_patience": 0,
            "middleware": ["shop.middleware.Timed"],
            "error_reporter": "shop.errors.report",
            "enqueue_on_commit": True,
        },
    )
    assert options == BackendOptions(
        alias="mail",
        database="queue",
        max_attempts=5,
        backoff=five_seconds,
        preserve_finished_jobs=False,
        clear_finished_jobs_after=timedelta(hours=1),
        clear_failed_jobs_after=timedelta(days=90),
        expires=timedelta(hours=2),
        timeout=timedelta(seconds=30),
        timeout_grace=timedelta(0),
        max_payload_bytes=1000,
        max_payload_depth=8,
        unknown_task_patience=timedelta(0),
        middleware=("shop.middleware.Timed",),
        error_reporter="shop.errors.report",
        enqueue_on_commit=True,
    )


def test_retention_falls_back_to_the_module_level_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady_queue_core, "preserve_finished_jobs", False, raising=False)
    monkeypatch.setattr(steady_queue_core, "clear_finished_jobs_after", 60, raising=False)
    options = BackendOptions.parse("default", {"preserve_finished_jobs": None})
    assert options.preserve_finished_jobs is False
    assert options.clear_finished_jobs_after == timedelta(minutes=1)
    assert BackendOptions.parse("default", {"preserve_finished_jobs": True}).preserve_finished_jobs
    monkeypatch.setattr(steady_queue_core, "clear_finished_jobs_after", None)
    assert BackendOptions.parse("default", {}).clear_finished_jobs_after is None


def test_a_wrong_module_level_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady_queue_core, "preserve_finished_jobs", "yes", raising=False)
    assert problems_of({}) == [
        "steady_queue_core.preserve_finished_jobs: expected True or False, got str 'yes'"
    ]
    assert BackendOptions.parse("default", {"preserve_finished_jobs": True})


def test_unknown_and_wrong_options_are_reported_together() -> None:
    assert problems_of({"max_attemps": 3, "max_attempts": 0, "database": ""}, alias="mail") == [
        "TASKS['mail']['OPTIONS']: unknown key 'max_attemps'; did you mean 'max_attempts'?",
        "TASKS['mail']['OPTIONS']['database']: expected an alias of DATABASES, or None, got str ''",
        "TASKS['mail']['OPTIONS']['max_attempts']: expected an integer of at least 1 "
        "and at most 1000, got int 0",
    ]
    assert problems_of([]) == ["TASKS['default']['OPTIONS']: expected a dict, got list []"]


@for_each(
    "key, value",
    [
        ("alias", "default"),
        ("max_attempts", 1001),
        ("max_attempts", True),
        ("database", 5),
        ("preserve_finished_jobs", 0),
        ("clear_finished_jobs_after", "1d"),
        ("clear_finished_jobs_after", -1),
        ("clear_failed_jobs_after", "never"),
        ("expires", 0),
        ("expires", "never"),
        ("timeout", 0),
        ("timeout", float("nan")),
        ("timeout", "never"),
        ("timeout_grace", -1),
        ("timeout_grace", None),
        ("max_payload_bytes", 0),
        ("max_payload_depth", 501),
        ("unknown_task_patience", -1),
        ("error_reporter", 1),
        ("error_reporter", "report"),
        ("middleware", [1]),
        ("middleware", {"a.B"}),
        ("middleware", None),
        ("middleware", ["Timed"]),
        ("unknown_task_patience", None),
        ("enqueue_on_commit", None),
        ("backoff", "not dotted"),
        ("backoff", "nodots"),
        ("backoff", -1),
        ("backoff", float("nan")),
        ("backoff", True),
        ("backoff", [1, 2]),
    ],
)
def test_wrong_values_are_refused(key: str, value: object) -> None:
    (problem,) = problems_of({key: value})
    assert problem.startswith("TASKS['default']['OPTIONS']")
    assert repr(key) in problem


def test_a_dotted_backoff_is_imported_only_when_it_is_needed() -> None:
    path = f"{__name__}.five_seconds"
    assert BackendOptions.parse("default", {"backoff": path}).resolve_backoff() is five_seconds
    options = BackendOptions.parse("mail", {"backoff": "no.such.module"})
    with pytest.raises(
        ConfigurationError, match=r"TASKS\['mail'\]\['OPTIONS'\]\['backoff'\]: "
    ) as caught:
        options.resolve_backoff()
    assert "'no.such.module' cannot be imported" in str(caught.value)


def test_a_number_is_a_constant_backoff() -> None:
    backoff = BackendOptions.parse("default", {"backoff": 7}).resolve_backoff()
    assert retries.delay_of(backoff, ValueError(), SimpleNamespace(attempts=3)) == 7
