"""What the system checks say of wrong settings."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.checks import Error, run_checks

from steady_queue_core import Unique, limits_concurrency, limits_rate, task
from steady_queue_core.compat import Task, task_backends
from steady_queue_core.configuration import ConfigurationError
from steady_queue_core.configured_backends import own_backends
from steady_queue_core.sharding import ShardedBackend
from steady_queue_core.tasks import registry

from ..core.samples import FRAMEWORK
from .places import tasks_in
from .tasks import OURS, SHARDED, anything, bill, greet, note, pack, report, ship

OPTIONS = "TASKS['default']['OPTIONS']"


def told(settings: Any, options: Any, **others: Any) -> list[str]:
    """Return what the check of the sharded backend says of its options."""
    default = {"BACKEND": SHARDED, "QUEUES": [], "OPTIONS": options}
    settings.TASKS = {**tasks_in("default", "other"), "default": default, **others}
    found = list(task_backends["default"].check())
    assert {each.id for each in found} <= {"steady_queue.E004"}
    assert all(isinstance(each, Error) for each in found)
    return [each.msg for each in found]


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ({"shards": ["east", "west"]}, []),
        ({"shards": "east, west", "key": "tests.sharding.tasks.key_of_order"}, []),
        ({"shards": ["west"], "draining": ["east"], "key": None}, []),
        (
            {},
            [f"{OPTIONS}['shards']: expected the aliases in TASKS of one backend or more, got "
             "tuple ()"],
        ),
        (None, [f"{OPTIONS}['shards']: expected the aliases in TASKS of one backend or more, got "
                "tuple ()"]),
        (17, [f"{OPTIONS}: expected a dict, got int 17"]),
        (
            {"shard": ["east"], "shards": ["west"]},
            [f"{OPTIONS}: unknown key 'shard'; did you mean 'shards'?"],
        ),
        (
            {"shards": ["east", "west"], "max_attempts": 3},
            [f"{OPTIONS}: unknown key 'max_attempts'; valid are 'draining', 'key', 'shards'"],
        ),
        (
            {"shards": {"east": 1}},
            [f"{OPTIONS}['shards']: expected a list or tuple of strings, or one string with "
             "commas, got dict {'east': 1}"],
        ),
        ({"shards": ["east", ""]}, [f"{OPTIONS}['shards']: str '' is no alias in TASKS"]),
        (
            {"shards": ["east", "wset"]},
            [f"{OPTIONS}: the shard 'wset' is not in TASKS; did you mean 'west'?"],
        ),
        (
            {"shards": ["east", "east", "west"], "draining": ["west"]},
            [f"{OPTIONS}: 'east' is named 2 times; name each shard once",
             f"{OPTIONS}: 'west' is named 2 times; name each shard once"],
        ),
        ({"shards": ["default"]}, [f"{OPTIONS}: 'default' cannot be a shard of itself"]),
        (
            {"shards": ["east", "sharded"]},
            [f"{OPTIONS}: the shard TASKS['sharded'] is sharded itself; give it the BACKEND "
             f"'{OURS}'"],
        ),
        (
            {"shards": ["east", "foreign"]},
            [f"{OPTIONS}: the shard TASKS['foreign'] is a {FRAMEWORK}.backends.dummy.DummyBackend; "
             f"give it the BACKEND '{OURS}'"],
        ),
        (
            {"shards": ["east", "twin"]},
            [f"{OPTIONS}: the shards 'east' and 'twin' store their jobs in the same database, "
             "'default'; give each an OPTIONS['database'] of its own"],
        ),
        (
            {"shards": ["east"], "key": "customer id"},
            [f"{OPTIONS}['key']: expected the name of a parameter, or the dotted path of a "
             "function, got str 'customer id'"],
        ),
        (
            {"shards": ["east"], "key": 17},
            [f"{OPTIONS}['key']: expected the name of a parameter, or the dotted path of a "
             "function, got int 17"],
        ),
        (
            {"shards": ["east"], "key": "tests.sharding.tasks.nothing"},
            [f"{OPTIONS}['key']: 'tests.sharding.tasks.nothing' cannot be imported: Module "
             '"tests.sharding.tasks" does not define a "nothing" attribute/class'],
        ),
        (
            {"shards": ["east"], "key": "tests.sharding.tasks.coroutine_key"},
            [f"{OPTIONS}['key']: 'tests.sharding.tasks.coroutine_key' is not a function of the "
             "task, its arguments and its named arguments"],
        ),
    ],
)  # fmt: skip
def test_wrong_options_are_named(settings: Any, options: Any, messages: list[str]) -> None:
    sharded = {"BACKEND": SHARDED, "OPTIONS": {"shards": ["west"]}}
    foreign = {"BACKEND": f"{FRAMEWORK}.backends.dummy.DummyBackend"}
    twin = {"BACKEND": OURS, "OPTIONS": {"database": "default"}}
    assert told(settings, options, sharded=sharded, foreign=foreign, twin=twin) == messages


def test_queues_that_a_shard_does_not_have_are_named(settings: Any) -> None:
    default = {
        "BACKEND": SHARDED, "QUEUES": ["mail", "default", "bulk"],
        "OPTIONS": {"shards": ["east", "west"]},
    }  # fmt: skip
    west = {"BACKEND": OURS, "QUEUES": ["default"], "OPTIONS": {"database": "other"}}
    assert told(settings, {}, default=default, west=west) == [
        "TASKS['default']['QUEUES'] has 'bulk', 'mail', which the QUEUES of the shard "
        "TASKS['west'] do not have; give both the same"
    ]


def test_a_shard_that_cannot_be_loaded_is_named(settings: Any) -> None:
    [message] = told(
        settings, {"shards": ["east", "west"]}, west={"BACKEND": "nowhere.Backend", "OPTIONS": {}}
    )
    assert message.startswith(f"{OPTIONS}: the shard TASKS['west'] cannot be used: ")


def test_wrong_options_of_a_shard_are_left_to_its_own_check(settings: Any) -> None:
    west = {"BACKEND": OURS, "OPTIONS": {"databse": "other"}}
    assert told(settings, {"shards": ["east", "west"]}, west=west) == []


def test_wrong_options_do_not_keep_modules_from_being_imported(settings: Any) -> None:
    told(settings, {"shards": ["nowhere"], "key": "customer_id"})
    variant = greet.using(priority=5)
    with pytest.raises(ConfigurationError, match="the shard 'nowhere' is not in TASKS"):
        variant.enqueue(1)


def test_it_is_no_backend_that_stores_jobs(settings: Any) -> None:
    settings.TASKS = tasks_in("default", "other")
    assert list(own_backends()) == ["east", "west"]
    assert isinstance(task_backends["default"], ShardedBackend)


def found(settings: Any, monkeypatch: Any, tasks: list[Task], **options: Any) -> list[str]:
    """Return the warnings about these tasks, which are those of a sharded backend."""
    settings.TASKS = tasks_in("default", "other", **options)
    monkeypatch.setattr(registry, "_registered", {each.module_path: each for each in tasks})
    told = run_checks(tags=["steady_queue"], databases=[])
    return [f"{each.id}: {each.msg}" for each in told if each.id[-4:] in ("W018", "W019", "W020")]


def test_a_key_that_no_task_has_is_warned_of(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    misspelt = found(settings, monkeypatch, [greet, bill, pack], key="custmer_id")
    assert misspelt == [
        f"steady_queue.W019: {OPTIONS}['key'] is 'custmer_id', but no task of this backend has a "
        "parameter of this name; did you mean 'customer_id'?"
    ]
    for tasks in ([greet, note, ship], [anything, note], [pack, report], []):
        assert found(settings, monkeypatch, tasks) == []
    assert found(settings, monkeypatch, [note], key=None) == []
    assert found(settings, monkeypatch, [note], key="tests.sharding.tasks.key_of_order") == []
    # Callbacks and members of batches need no key, but some task does.
    assert len(found(settings, monkeypatch, [note, ship])) == 1


def limited(**options: Any) -> Task:
    made: Task = task(**options)(_work)
    return made


def _work(customer_id: int) -> None:
    """Do nothing."""


def test_limits_that_each_shard_counts_by_itself_are_warned_of(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TASKS = tasks_in("default", "other")
    path = f"{__name__}._work"
    fixed = {"key": "all"}
    for tasks in (
        limits_concurrency(**fixed)(limited()),
        limits_rate(**fixed, to=1, per=timedelta(1))(limited()),
        limited(unique=Unique(key="all")),
        limited(unique=Unique(key="all"), shard_key=lambda customer_id: customer_id),
    ):
        assert found(settings, monkeypatch, [tasks]) == [
            "steady_queue.W020: Each shard limits these tasks by itself, because the key of their "
            "limit, or their unique key, is the same for all calls, and the shard key is not: "
            f"{path}."
        ]
    for tasks in (
        limits_concurrency(key=lambda customer_id: customer_id)(limited()),
        limits_concurrency(**fixed)(limited(shard_key="one place")),
        limits_concurrency(**fixed)(limited(backend="east")),
        limited(unique=True),
    ):
        assert found(settings, monkeypatch, [tasks]) == []
    settings.TASKS["default"]["OPTIONS"]["shards"] = ["east"]
    settings.TASKS = {**settings.TASKS}
    monkeypatch.setattr(registry, "_registered", {path: limits_concurrency(**fixed)(limited())})
    assert "steady_queue.W020" not in {
        each.id for each in run_checks(tags=["steady_queue"], databases=[])
    }


def test_the_checks_of_tasks_look_at_each_shard(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TASKS = tasks_in("default", "other")
    fair = limited(fair_key="x")
    told = found(settings, monkeypatch, [fair])
    assert [each[:17] for each in told] == ["steady_queue.W018"] * 2
    assert found(settings, monkeypatch, [fair], fair_queues="*") == []


def test_checks_of_tasks_leave_wrong_settings_to_others(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options in ({"shards": ["nowhere"]}, {"shards": ["east"], "key": "no.where"}):
        settings.TASKS = tasks_in("default", "default")
        del settings.TASKS["west"]
        settings.TASKS["default"]["OPTIONS"] = options
        settings.TASKS = {**settings.TASKS}
        monkeypatch.setattr(registry, "_registered", {"x": greet})
        told = [each.id for each in run_checks(tags=["steady_queue"], databases=[])]
        assert not {"steady_queue.W019", "steady_queue.W020"} & set(told)
