"""Subcommands of a project with shards."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from steady_queue_core.models import Queue

from ..command_line.invoking import Told, invoke
from .places import Shards, on_every_pair, on_sqlite
from .tasks import greet

PATH = "tests.sharding.tasks"


@on_every_pair
def test_a_call_is_enqueued_in_its_shard(west: str, shards: Shards) -> None:
    [east], [key] = shards.keys("east"), shards.keys("west")
    told = invoke("enqueue", f"{PATH}.greet", "--args", json.dumps([key]))
    job = shards.jobs("west").get()
    assert told == Told(0, f"Enqueued job west:{job.pk}.\n", "")
    told = invoke(
        "enqueue", f"{PATH}.greet", "--kwargs", json.dumps({"customer_id": east}), "--json"
    )
    assert told.json["job"] == f"east:{shards.jobs('east').get().pk}"
    by_name = invoke("enqueue", f"{PATH}.greet", "--args", f"[{east}]", "--backend", "west")
    assert by_name.out == f"Enqueued job {shards.jobs('west').last().pk}.\n"
    refused = invoke("enqueue", f"{PATH}.ship", "--args", "[1]")
    assert refused.code == 2
    assert "The shard key of tests.sharding.tasks.ship is not known" in refused.err


@on_every_pair
def test_jobs_are_named_by_the_ids_of_results(west: str, shards: Shards) -> None:
    keys = shards.keys("west", 2)
    first, second = (greet.enqueue(key) for key in keys)
    number = first.id.removeprefix("west:")
    assert invoke("show", first.id).lines[0] == f"Job {number}: {PATH}.greet"
    assert invoke("show", first.id) == invoke("show", number, "--backend", "west")
    assert invoke("show", first.id, "--json").json["jobs"][0]["args"] == [keys[0]]
    assert invoke("cancel", first.id, second.id).code == 0
    assert shards.jobs("west").filter(failedexecution__isnull=False).count() == 2
    assert invoke("retry", number, "--backend", "west").out == f"Job {number}: retried.\n"
    told = [invoke("doctor", first.id), invoke("doctor", number, "--backend", "west")]
    assert ["process-none" in each.out for each in told] == [True, True]
    assert invoke("show", "west:4711").err == "There is no job 4711.\n"


@on_every_pair
def test_the_older_command_cancels_in_a_shard(
    west: str, shards: Shards, capsys: pytest.CaptureFixture[str]
) -> None:
    first, _ = (greet.enqueue(key) for key in shards.keys("west", 2))
    call_command("steady_queue_cancel", first.id)
    call_command("steady_queue_cancel", "--task", f"{PATH}.greet", "--backend", "west", "--yes")
    told = capsys.readouterr().out.splitlines()
    assert told[0] == f"Job {first.id.removeprefix('west:')}: cancelled."
    assert told[-1] == "Cancelled 1 job."
    assert shards.jobs("west").filter(failedexecution__isnull=False).count() == 2
    with pytest.raises(CommandError) as raised:
        call_command("steady_queue_cancel", "--queue", "mail", "--backend", "default")
    assert str(raised.value) == (
        "--backend 'default' has its jobs in several databases "
        f"({', '.join(shards.databases.values())}). Choose a shard with --backend east|west."
    )
    assert raised.value.returncode == 2


@on_sqlite
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["show", "east:1", "west:1"],
            "The ids are those of several backends: name the jobs of one at a time, with --backend "
            "or as east:1.",
        ),
        (
            ["cancel", "west:1", "2"],
            "The ids are those of several backends: name the jobs of one at a time, with --backend "
            "or as west:1.",
        ),
        (
            ["retry", "west:1", "--backend", "east"],
            "The ids are those of several backends: name the jobs of one at a time, with --backend "
            "or as west:1.",
        ),
        (
            ["show", "nowhere:1"],
            "--backend 'nowhere' is no Steady Queue backend in TASKS. There are: east, west.",
        ),
        (
            ["show", "default:1"],
            "--backend 'default' has its jobs in several databases (default, second). Choose a "
            "shard with --backend east|west.",
        ),
        (
            ["pause", "mail", "--backend", "default"],
            "--backend 'default' has its jobs in several databases (default, second). Choose a "
            "shard with --backend east|west.",
        ),
    ],
)
def test_a_choice_that_is_none_is_refused(
    west: str, shards: Shards, arguments: list[str], message: str
) -> None:
    told = invoke(*arguments)
    assert (told.code, told.out) == (2, "")
    assert told.err.strip().removeprefix("Error: ") == message


@on_sqlite
@pytest.mark.parametrize(
    "text", [":1", "east:", "east:-1", "east:#1", "east:1:", "east:x", "1:east"]
)
def test_what_is_no_id_is_refused(west: str, shards: Shards, text: str) -> None:
    with pytest.raises(Exception, match="is not the id of a job"):
        invoke("show", text)


@on_every_pair
def test_the_alias_of_the_sharded_backend_stands_for_all_shards(west: str, shards: Shards) -> None:
    for using in shards.databases.values():
        Queue("mail", using).pause()
    found = invoke("queues", "--backend", "default", "--json").json["databases"]
    assert [each["database"] for each in found] == ["default", west]
    assert [each["backends"] for each in found] == [["east"], ["west"]]
    assert invoke("doctor", "--backend", "default").code in (0, 1)
    assert [each["database"] for each in invoke("queues", "--json").json["databases"]] == [
        "default", west,
    ]  # fmt: skip


@on_sqlite
def test_a_single_shard_needs_no_choice(west: str, shards: Shards) -> None:
    shards.settings.TASKS["default"]["OPTIONS"]["shards"] = ["west"]
    shards.settings.TASKS = {**shards.settings.TASKS}
    assert invoke("pause", "mail", "--backend", "default").code == 0
    assert Queue("mail", west).paused
    assert not Queue("mail", "default").paused
