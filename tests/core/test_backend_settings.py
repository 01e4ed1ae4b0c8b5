"""``STEADY_QUEUE["backends"]``: what differs for the database of one backend."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from steady_queue_core.checks import check_configuration
from steady_queue_core.configuration import Configuration, ConfigurationError, load
from steady_queue_core.configured_backends import options_on
from steady_queue_core.processes.supervisor.launch import (
    choose_databases,
    require_means,
    served_databases,
)

from .samples import OURS

SHARDED = "steady_queue_core.sharding.ShardedBackend"
EAST, WEST = ({**OURS, "OPTIONS": {"database": name}} for name in ("default", "west"))


@pytest.fixture
def west(settings: Any) -> Any:
    """Two backends on ``default``, and one on another database."""
    settings.DATABASES["west"] = {"ENGINE": "django.db.backends.sqlite3", "NAME": "west.sqlite3"}
    settings.TASKS = {"default": EAST, "mail": EAST, "west": WEST}
    yield settings
    del settings.DATABASES["west"]


def problems(settings: Any, value: object) -> list[str]:
    settings.STEADY_QUEUE = value
    return [each.msg for each in check_configuration(None) if each.id == "steady_queue.E004"]


def test_what_is_not_said_is_as_for_all(west: Any) -> None:
    west.STEADY_QUEUE = {
        "workers": [{"threads": 7}],
        "statistics": False,
        "backends": {
            "west": Configuration.Backend(
                dispatchers=[{"batch_size": 9}], process_alive_threshold=900, statistics=True
            ),
        },
    }
    everywhere, there = options_on("default"), options_on("west")
    assert everywhere.statistics is False
    assert everywhere.dispatchers == (Configuration.Dispatcher(),)
    assert there.workers == everywhere.workers == (Configuration.Worker(threads=7),)
    assert there.dispatchers == (Configuration.Dispatcher(batch_size=9),)
    assert there.process_alive_threshold == timedelta(minutes=15)
    assert there.statistics is True
    assert check_configuration(None) == []


def test_all_databases_are_served_unless_they_have_no_processes_or_others_are_named(
    west: Any,
) -> None:
    assert choose_databases(None) == ["default", "west"]
    assert choose_databases("mail, default") == ["default"]
    sharded = {"BACKEND": SHARDED, "OPTIONS": {"shards": ["west", "mail"], "key": "customer_id"}}
    west.TASKS = {**west.TASKS, "customers": sharded}
    assert choose_databases("customers") == ["west", "default"]
    assert list(served_databases(load(None), "west")) == ["west"]
    nobody = load({"backends": {"west": {"workers": [], "dispatchers": []}}})
    assert list(served_databases(nobody, None)) == ["default"]
    with pytest.raises(ConfigurationError, match="--backend 'x' is no Steady Queue backend"):
        choose_databases("west,x")


def test_backends_that_share_a_database_must_agree(west: Any) -> None:
    agreed = {"default": {"statistics": False}, "mail": {"statistics": False, "workers": []}}
    assert problems(west, {"backends": agreed}) == []
    assert options_on("default").workers == ()
    assert problems(west, {"backends": {**agreed, "mail": {"statistics": True}}}) == [
        "STEADY_QUEUE['backends']['mail']['statistics']: 'default' has another value, and both "
        "backends use the same database, whose processes serve both; set it for one"
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"weast": {}}, "did you mean 'west'?"),
        ({"west": {"worker": []}}, "unknown key 'worker'; did you mean 'workers'?"),
        ({"west": {"shutdown_timeout": 3}}, "unknown key 'shutdown_timeout'"),
        ({"west": {"workers": [{"threads": 0}]}}, "['west']['workers'][0]['threads']: expected"),
        ({"west": 3}, "['west']: expected a Configuration.Backend or a dict, got int 3"),
        ({3: {}}, "expected a dict of alias in TASKS to Configuration.Backend or dict"),
        ([], "expected a dict of alias in TASKS to Configuration.Backend or dict"),
        (
            {"west": {"process_alive_threshold": 100}},
            "['west']: process_alive_threshold (0:01:40) must be more than twice "
            "process_heartbeat_interval (0:01:00)",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(west: Any, value: object, said: str) -> None:
    [found] = problems(west, {"backends": value})
    assert found.startswith("STEADY_QUEUE['backends']")
    assert said in found


def test_what_workers_cannot_do_is_said_with_its_place(west: Any) -> None:
    wanted = [{"executor": "processes"}]
    options = load({"workers": wanted, "backends": {"west": {"workers": wanted}}})
    for using, place in (("default", "['workers']"), ("west", "['backends']['west']['workers']")):
        with pytest.raises(ConfigurationError) as caught:
            require_means(options_on(using, options), using, threads=True)
        assert str(caught.value).startswith(f"STEADY_QUEUE{place}[0]['executor'] is 'processes'")


def test_a_project_without_such_backends_may_have_settings_for_them(settings: Any) -> None:
    """Its tests may have replaced them by others."""
    settings.TASKS = {"default": {"BACKEND": "steady_queue_core.testing.DummyBackend"}}
    assert problems(settings, {"backends": {"west": {}}}) == []
