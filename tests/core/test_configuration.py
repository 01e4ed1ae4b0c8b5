"""``STEADY_QUEUE``: defaults, both ways to write it, and what wrong values are told."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

import steady_queue_core
from steady_queue_core.configuration import Configuration, ConfigurationError, load


def problems_of(value: object) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(value)
    return caught.value.problems


def test_without_settings_one_worker_and_one_dispatcher_run_with_the_defaults() -> None:
    options = load(None)
    assert options.workers == (Configuration.Worker(),)
    assert options.dispatchers == (Configuration.Dispatcher(),)
    assert options.scheduler == Configuration.Scheduler()
    assert options.process_heartbeat_interval == timedelta(seconds=60)
    assert options.process_alive_threshold == timedelta(minutes=5)
    assert options.shutdown_timeout == timedelta(seconds=5)
    assert options.supervisor_pidfile is None
    assert options.fork_startup_timeout == timedelta(seconds=30)
    assert options.dialects == {}
    assert options.task_modules == ()


def test_the_parts_have_the_documented_defaults() -> None:
    worker = Configuration.Worker()
    assert (worker.queues, worker.threads, worker.coroutines, worker.processes) == (
        ("*",),
        3,
        100,
        1,
    )
    assert worker.executor == "threads"
    assert worker.polling_interval == timedelta(milliseconds=100)
    assert worker.fresh_connections is False
    assert worker.prefetch == 500
    dispatcher = Configuration.Dispatcher()
    assert dispatcher.polling_interval == timedelta(seconds=1)
    assert dispatcher.batch_size == 500
    assert dispatcher.concurrency_maintenance is True
    assert dispatcher.concurrency_maintenance_interval == timedelta(seconds=600)
    scheduler = Configuration.Scheduler()
    assert scheduler.polling_interval == timedelta(seconds=5)
    assert scheduler.dynamic_tasks_enabled is False


def test_a_dict_and_options_mean_the_same() -> None:
    written = Configuration.Options(
        workers=[
            Configuration.Worker(queues=["real_time", "mail*"], threads=5, processes=2),
            {"queues": "background, low", "polling_interval": 0.5},
        ],
        dispatchers=[
            Configuration.Dispatcher(polling_interval=timedelta(seconds=2), batch_size=10)
        ],
        scheduler=Configuration.Scheduler(dynamic_tasks_enabled=True),
        shutdown_timeout=30,
        supervisor_pidfile="tmp/supervisor.pid",
        dialects={"default": "sqlite"},
        task_modules=["shop.jobs"],
    )
    plain = {
        "workers": [
            {"queues": ["real_time", "mail*"], "threads": 5, "processes": 2},
            Configuration.Worker(queues=("background", "low"), polling_interval=0.5),
        ],
        "dispatchers": [{"polling_interval": 2, "batch_size": 10}],
        "scheduler": {"dynamic_tasks_enabled": True},
        "shutdown_timeout": timedelta(seconds=30),
        "supervisor_pidfile": Path("tmp/supervisor.pid"),
        "dialects": {"default": "sqlite"},
        "task_modules": ("shop.jobs",),
    }
    options = load(plain)
    assert options == load(written) == load(options)
    assert options.workers[1].queues == ("background", "low")
    assert options.workers[1].polling_interval == timedelta(seconds=0.5)
    assert options.shutdown_timeout == timedelta(seconds=30)
    assert options.supervisor_pidfile == Path("tmp/supervisor.pid")


def test_the_settings_are_read() -> None:
    with override_settings(STEADY_QUEUE={"workers": [{"threads": 7}]}):
        assert Configuration.load().workers == (Configuration.Worker(threads=7),)
    with override_settings(STEADY_QUEUE=None):
        assert Configuration.load() == load(None)


@pytest.mark.parametrize("empty", [[], ()])
def test_an_empty_list_means_none_and_a_missing_one_the_default(empty: object) -> None:
    assert load({"workers": empty}).workers == ()
    assert load({"workers": empty}).dispatchers == (Configuration.Dispatcher(),)
    assert load({"dispatchers": empty, "workers": None}).workers == (Configuration.Worker(),)
    assert load({"dispatchers": empty}).dispatchers == ()


def test_nothing_to_run_is_refused() -> None:
    assert problems_of({"workers": [], "dispatchers": []}) == [
        "STEADY_QUEUE: nothing to run: 'workers' and 'dispatchers' are both empty; "
        "leave one of them out to get its default"
    ]
    with pytest.raises(ConfigurationError, match="Options: nothing to run"):
        Configuration.Options(workers=(), dispatchers=())


def test_module_level_settings_are_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Configuration.Options(shutdown_timeout=1)
    monkeypatch.setattr(steady_queue_core, "process_heartbeat_interval", 10, raising=False)
    monkeypatch.setattr(
        steady_queue_core, "process_alive_threshold", timedelta(seconds=25), raising=False
    )
    monkeypatch.setattr(steady_queue_core, "shutdown_timeout", timedelta(seconds=9), raising=False)
    monkeypatch.setattr(steady_queue_core, "supervisor_pidfile", "/run/queue.pid", raising=False)
    options = load(written)
    assert options.process_heartbeat_interval == timedelta(seconds=10)
    assert options.process_alive_threshold == timedelta(seconds=25)
    assert options.shutdown_timeout == timedelta(seconds=1)
    assert options.supervisor_pidfile == Path("/run/queue.pid")


def test_a_wrong_module_level_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady_queue_core, "shutdown_timeout", "soon", raising=False)
    assert problems_of(None) == [
        "steady_queue_core.shutdown_timeout: expected a timedelta or a number of seconds "
        "of at least 0 and at most 3650 days, got str 'soon'"
    ]


def test_the_threshold_must_be_more_than_two_heartbeats() -> None:
    assert load({"process_heartbeat_interval": 1, "process_alive_threshold": 2.1})
    assert problems_of({"process_heartbeat_interval": 150}) == [
        "STEADY_QUEUE: process_alive_threshold (0:05:00) must be more than twice "
        "process_heartbeat_interval (0:02:30), or a process counts as dead after one late heartbeat"
    ]


def test_all_problems_are_reported_at_once_with_their_places() -> None:
    problems = problems_of(
        {
            "wrokers": [],
            "workers": [{"thread": 3}, {"threads": 0, "queues": ["ok", "a*b"]}, 5],
            "dispatchers": {"batch_size": 1},
            "scheduler": {"polling_interval": "5s", "dynamic_tasks_enabled": 1},
            "fork_startup_timeout": 0,
            3: 4,
        }
    )
    assert problems == [
        "STEADY_QUEUE: unknown key 'wrokers'; did you mean 'workers'?",
        "STEADY_QUEUE: unknown key 3; valid are 'backends', 'dialects', 'dispatchers', "
        "'drain_timeout', 'fork_startup_timeout', 'heartbeat_file', 'hidden_arguments', "
        "'metrics_token', 'probe_address', 'probe_port', 'process_alive_threshold', "
        "'process_heartbeat_interval', 'scheduler', 'shutdown_timeout', 'silence_polling', "
        "'state_directory', 'statistics', 'supervisor_mode', 'supervisor_pidfile', "
        "'task_modules', 'workers'",
        "STEADY_QUEUE['workers'][0]: unknown key 'thread'; did you mean 'threads'?",
        "STEADY_QUEUE['workers'][1]['queues']: the entry str 'a*b' has a '*' before its end; "
        "write an exact name, a prefix such as 'mail*', or '*' for all queues",
        "STEADY_QUEUE['workers'][1]['threads']: expected an integer of at least 1, got int 0",
        "STEADY_QUEUE['workers'][2]: expected a Configuration.Worker or a dict, got int 5",
        "STEADY_QUEUE['dispatchers']: expected a list of Configuration.Dispatcher or dicts, "
        "got dict {'batch_size': 1}",
        "STEADY_QUEUE['scheduler']['polling_interval']: expected a timedelta or a number of "
        "seconds above 0 and at most 3650 days, got str '5s'",
        "STEADY_QUEUE['scheduler']['dynamic_tasks_enabled']: expected True or False, got int 1",
        "STEADY_QUEUE['fork_startup_timeout']: expected a timedelta or a number of seconds above 0 "
        "and at most 3650 days, got int 0",
    ]


def test_the_error_reads_as_a_list_and_survives_pickling() -> None:
    error = ConfigurationError(["one", "two"])
    assert isinstance(error, ImproperlyConfigured)
    assert str(error) == "2 problems:\n- one\n- two"
    assert str(ConfigurationError("one")) == "one"
    assert pickle.loads(pickle.dumps(error)).problems == ["one", "two"]


@pytest.mark.parametrize("value", ["workers", 5, [Configuration.Worker()], Configuration.Worker()])
def test_another_type_of_setting_is_refused(value: object) -> None:
    assert "expected a Configuration.Options or a dict, got" in problems_of(value)[0]


@pytest.mark.parametrize(
    ("queues", "kept"),
    [
        ("*", ("*",)),
        (" a , b* ", ("a", "b*")),
        (["b ", "a", "b"], ("b", "a")),
        (("x" * 255,), ("x" * 255,)),
        (["100%_\\", "größe", "a,b"], ("100%_\\", "größe", "a,b")),
        ("*, !mail*", ("*", "!mail*")),
        (["!mail"], ("!mail",)),
        (["mail*", "a", "!mail_bulk*", "!ab"], ("mail*", "a", "!mail_bulk*", "!ab")),
    ],
)
def test_queue_lists_keep_their_order(queues: list[str], kept: tuple[str, ...]) -> None:
    assert Configuration.Worker(queues=queues).queues == kept


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        (["*x"], "the entry str '\\*x' has a '\\*' before its end"),
        (["a*b"], "before its end"),
        (["**"], "before its end"),
        (["a**"], "before its end"),
        ([""], "the entry str '' is empty"),
        ("a,,b", "is empty"),
        ("", "is empty"),
        ([" "], "is empty"),
        (["x" * 256], "has 256 characters, at most 255"),
        (["a\0b"], "invisible characters"),
        (["a\nb"], "invisible characters"),
        (["a\ud800"], "invisible characters"),
        (["a\u200b"], "invisible characters"),
        (["a\u00a0b"], "invisible characters"),
        (["\u00ad*"], "invisible characters"),
        (["*", "!"], "the entry str '!' is empty"),
        (["!*"], "the entry str '!\\*' excludes all queues"),
        (["*", "!a*b"], "before its end"),
        (["!!a"], "has a '!' too many"),
        (["a", "!a"], "the entry 'a' matches nothing, because '!a' excludes it"),
        (["b", "ab*", "!a*"], "the entry 'ab\\*' matches nothing, because '!a\\*' excludes it"),
        ([], "at least one queue"),
        ([1], r"Configuration.Worker\(queues=...\)\[0\]: expected a string, got int 1"),
        ({"a"}, "expected a list or tuple of strings"),
        (b"a", "expected a list or tuple of strings"),
        (None, "expected a list or tuple of strings"),
    ],
)
def test_queue_lists_that_cannot_work_are_refused(queues: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Configuration.Worker(queues=queues)


@pytest.mark.parametrize("name", ["threads", "coroutines", "processes"])
@pytest.mark.parametrize("value", [0, -1, True, 1.5, "3", None])
def test_counts_are_positive_integers(name: str, value: object) -> None:
    place = f"STEADY_QUEUE['workers'][0]['{name}']"
    problem = problems_of({"workers": [{name: value}]})[0]
    assert problem.startswith(f"{place}: expected an integer of at least 1, got ")


@pytest.mark.parametrize("value", ["process", "Threads", "", None, 1, ["threads"]])
def test_an_executor_is_one_of_two(value: object) -> None:
    assert Configuration.Worker(executor="processes").runs_processes
    assert not Configuration.Worker(executor="threads").runs_processes
    [problem] = problems_of({"workers": [{"executor": value}]})
    assert problem.startswith(
        "STEADY_QUEUE['workers'][0]['executor']: expected 'threads' or 'processes', got "
    )


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "3", float("nan")])
@pytest.mark.parametrize(("name", "least"), [("recycle_after", 1), ("recycle_rss", 1 << 20)])
def test_recycling_takes_whole_numbers(name: str, least: int, value: object) -> None:
    chosen: Any = {name: least}
    assert getattr(Configuration.Worker(**chosen), name) == least
    [problem] = problems_of({"workers": [{name: value}]})
    expected = (
        f"STEADY_QUEUE['workers'][0]['{name}']: expected an integer of at least {least}, got "
    )
    assert problem.startswith(expected)


@pytest.mark.parametrize("value", [[], [-1], [True], [0.0], ["1"], "0", 1, {0: 1}])
def test_an_affinity_is_a_list_of_processors(value: object) -> None:
    assert Configuration.Worker(cpu_affinity=[3, 1, 3]).cpu_affinity == (1, 3)
    [problem] = problems_of({"workers": [{"cpu_affinity": value}]})
    assert problem.startswith(
        "STEADY_QUEUE['workers'][0]['cpu_affinity']: "
        "expected a list of the numbers of processors, from 0 on, or None, got "
    )


def test_megabytes_are_taken_for_a_mistake() -> None:
    [problem] = problems_of({"workers": [{"recycle_rss": 500}]})
    assert "expected an integer of at least 1048576, got int 500" in problem


@pytest.mark.parametrize("value", [-1, 10_001, True, 1.5, "3", None])
def test_a_prefetch_is_none_or_a_moderate_number(value: object) -> None:
    assert Configuration.Worker(prefetch=0).prefetch == 0
    [problem] = problems_of({"workers": [{"prefetch": value}]})
    assert problem.startswith(
        "STEADY_QUEUE['workers'][0]['prefetch']: "
        "expected an integer of at least 0 and at most 10000, got "
    )


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        1e-9,
        float("nan"),
        float("inf"),
        pytest.param(10**400, id="huge"),
        pytest.param(10**5000, id="unprintable"),
        True,
        "1",
        timedelta(0),
        timedelta.max,
        None,
    ],
)
def test_durations_are_above_zero_and_finite(value: object) -> None:
    problem = problems_of({"workers": [{"polling_interval": value}]})[0]
    assert "polling_interval']: expected a timedelta or a number of seconds above 0" in problem
    assert len(problem) < 300


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dialects", ["sqlite"]),
        ("dialects", {"default": None}),
        ("dialects", {"default": ""}),
        ("task_modules", ["shop jobs"]),
        ("task_modules", 1),
        ("task_modules", ["shop..jobs"]),
        ("supervisor_pidfile", ""),
        ("supervisor_pidfile", 1),
        ("hidden_arguments", "(card"),
        ("hidden_arguments", ["card"]),
        ("shutdown_timeout", -1),
        ("scheduler", []),
    ],
)
def test_wrong_values_name_their_place(key: str, value: object) -> None:
    (problem,) = problems_of({key: value})
    assert problem.startswith(f"STEADY_QUEUE['{key}']: ")


def test_values_are_frozen_and_can_be_replaced() -> None:
    worker = Configuration.Worker(queues=["a"], polling_interval=2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        worker.threads = 5  # type: ignore[misc]  # Refused.
    assert dataclasses.replace(worker, threads=5) == Configuration.Worker(
        queues="a", polling_interval=2, threads=5
    )
    assert hash(load(None)) == hash(load({}))
    with pytest.raises(ConfigurationError, match=r"Configuration.Worker\(threads=...\)"):
        dataclasses.replace(worker, threads=-5)


def test_settings_files_may_import_it_before_django_is_set_up() -> None:
    code = (
        "from steady_queue_core.configuration import Configuration, load\n"
        "import steady_queue_core.backend_options, steady_queue_core.retries\n"
        "import steady_queue_core.schedules.cron, steady_queue_core.recurring_task\n"
        "print(load(Configuration.Options(workers=[Configuration.Worker()])).workers[0].threads)"
    )
    environment = {
        name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"
    }
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_where_probes_are_answered() -> None:
    options = load({"probe_port": 8090, "probe_address": "::1", "heartbeat_file": "/run/beat"})
    assert (options.probe_port, options.probe_address) == (8090, "::1")
    assert options.heartbeat_file == Path("/run/beat")
    assert problems_of({"probe_port": 70000, "probe_address": "localhost"}) == [
        "STEADY_QUEUE['probe_port']: expected an integer of at least 1 and at most 65535, got int "
        "70000",
        "STEADY_QUEUE['probe_address']: expected an IP address of this host, such as '0.0.0.0' for "
        "all, got str 'localhost'",
    ]


def test_a_token_is_no_word_and_is_not_told() -> None:
    assert load({"metrics_token": "0123456789abcdef"}).metrics_token == "0123456789abcdef"
    assert problems_of({"metrics_token": "secret"}) == [
        "STEADY_QUEUE['metrics_token']: expected a str of at least 16 characters"
    ]
