"""The option ``fair_queues``: which queues are fair, and who is asked for it."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from django.test import override_settings

from steady_queue_core import task
from steady_queue_core.backend import SteadyQueueBackend
from steady_queue_core.backend_options import BackendOptions
from steady_queue_core.checks import check_fair_keys
from steady_queue_core.configuration import ConfigurationError
from steady_queue_core.configured_backends import fair_queues_on
from steady_queue_core.dialects import fair_queues_in
from steady_queue_core.features.fair import of_database
from steady_queue_core.features.fair.queues import FairQueues, is_weight
from steady_queue_core.tasks import registry

BACKEND = "steady_queue_core.backend.SteadyQueueBackend"
PATH = "TASKS['default']['OPTIONS']['fair_queues']"
FORMS = (
    f"{PATH}: expected '*', names of queues such as ['mail', 'tenant-*'], or a dict of these and "
    "weights, got"
)
WEIGHT = (
    "expected a number of at least 1 and at most 1000, or None for a queue that is not fair, got"
)


def parsed(value: object) -> FairQueues | None:
    return BackendOptions.parse("default", {"fair_queues": value}).fair_queues


@pytest.mark.parametrize("value", [None, {}, [], ()])
def test_without_an_entry_no_queue_is_fair(value: object) -> None:
    assert parsed(value) is None


@pytest.mark.parametrize(
    ("value", "weights"),
    [
        ("*", {"mail": 1, "": 1}),
        (["mail", "tenant-*"], {"mail": 1, "tenant-": 1, "tenant-7": 1, "mails": None}),
        (("mail",), {"mail": 1, "Mail": None}),
        (
            {"mail": 1, "imports*": 10, "imports-own": 2.5, "*": 3, "audit": None},
            {"mail": 1, "imports": 10, "imports-own": 2.5, "imports-own2": 10, "x": 3,
             "audit": None},
        ),
    ],
)  # fmt: skip
def test_the_entry_that_says_most_of_a_name_gives_the_weight(
    value: object, weights: dict[str, float | None]
) -> None:
    found = parsed(value)
    assert found is not None
    assert {name: found.weight_of(name) for name in weights} == weights


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("mail", [f"{FORMS} str 'mail'"]),
        (5, [f"{FORMS} int 5"]),
        ([1], [f"{FORMS} list [1]"]),
        ({"mail"}, [f"{FORMS} set {{'mail'}}"]),
        ({"mail": 0}, [f"{PATH}['mail']: {WEIGHT} int 0"]),
        ({"mail": 0.5}, [f"{PATH}['mail']: {WEIGHT} float 0.5"]),
        ({"mail": 1001}, [f"{PATH}['mail']: {WEIGHT} int 1001"]),
        ({"mail": True}, [f"{PATH}['mail']: {WEIGHT} bool True"]),
        ({"mail": nan}, [f"{PATH}['mail']: {WEIGHT} float nan"]),
        ({"mail": inf}, [f"{PATH}['mail']: {WEIGHT} float inf"]),
        ({"mail": "5"}, [f"{PATH}['mail']: {WEIGHT} str '5'"]),
        ({1: 5}, [f"{PATH}: expected names of queues, got int 1"]),
        (["!mail"], [f"{PATH}: '!mail' leaves out queues; give them the weight None instead, in a "
                     "dict"]),
        (["", " mail"], [
            f"{PATH}: '' is empty",
            f"{PATH}: ' mail' contains control or other invisible characters, or leading or "
            "trailing whitespace",
        ]),
    ],
)  # fmt: skip
def test_wrong_entries_are_refused_with_their_place(value: object, problems: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parsed(value)
    assert caught.value.problems == problems


@pytest.mark.parametrize("value", [1, 1.0, 2.5, 1000])
def test_numbers_from_1_to_1000_are_weights(value: object) -> None:
    assert is_weight(value)


@pytest.mark.parametrize("value", [0, 0.99, 1000.1, -1, nan, inf, True, "5", b"5", None, [5]])
def test_nothing_else_is_a_weight(value: object) -> None:
    assert not is_weight(value)


def test_entries_for_queues_that_the_backend_does_not_have_are_errors() -> None:
    params = {"QUEUES": ["mail"], "OPTIONS": {"fair_queues": ["mail", "mial", "re*"]}}
    found = SteadyQueueBackend("default", params).check()
    assert [(each.id, each.msg, each.hint) for each in found] == [
        (
            "steady_queue.E004",
            f"{PATH} names {entry!r}, but the QUEUES of this backend are 'mail'.",
            "Check the spelling, or add the queue to QUEUES.",
        )
        for entry in ("mial", "re*")
    ]


# --- who is asked ---------------------------------------------------------------------------------


def backends(**options: Any) -> dict[str, Any]:
    return {
        alias: {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": given}
        for alias, given in options.items()
    }


def test_the_backends_of_a_database_declare_its_queues_together(settings: Any) -> None:
    settings.TASKS = backends(
        other={"database": "default", "fair_queues": {"mail": 7, "bulk": 2}},
        default={"fair_queues": {"mail": 5}},
        elsewhere={"database": "elsewhere", "fair_queues": ["far"]},
        plain={},
    )
    here, there = fair_queues_in("default"), fair_queues_in("elsewhere")
    assert here is not None
    assert there is not None
    assert [here.weight_of(name) for name in ("mail", "bulk", "far")] == [5, 2, None]
    assert [there.weight_of(name) for name in ("mail", "far")] == [None, 1]
    assert fair_queues_in("nowhere") is None


def test_what_cannot_be_used_in_tasks_declares_none_and_is_in_nobodys_way(settings: Any) -> None:
    settings.TASKS = {
        **backends(wrong={"fair_queues": 5}, default={"fair_queues": ["mail"]}),
        "broken": {"BACKEND": "no.such.Backend"},
        "memory": {
            "BACKEND": "steady_queue_core.testing.DummyBackend",
            "OPTIONS": {"fair_queues": ["memory"]},
        },
    }
    found = fair_queues_in("default")
    assert found is not None
    assert found.by_entry == {"mail": 1}


def test_nobody_is_asked_twice_with_the_same_settings(settings: Any) -> None:
    asked: list[str] = []

    def source(using: str) -> FairQueues | None:
        asked.append(using)
        return None

    of_database.ask(source)
    try:
        assert [fair_queues_in(using) for using in ("default", "default", "other")] == [None] * 3
        assert asked == ["default", "other"]
        settings.TASKS = backends(default={"fair_queues": "*"})
        assert fair_queues_in("default") is None
        assert asked == ["default", "other", "default"]
    finally:
        of_database.ask(fair_queues_on)
    assert fair_queues_in("default") is not None


def test_other_settings_change_which_queues_are_fair() -> None:
    assert fair_queues_in("default") is None
    with override_settings(TASKS=backends(default={"fair_queues": "*"})):
        assert fair_queues_in("default") is not None
    assert fair_queues_in("default") is None


# --- the check ------------------------------------------------------------------------------------


@task(queue_name="mail", fair_key="x")
def fair() -> None:
    """Be in a queue that is fair."""


@task(queue_name="bulk", fair_key=lambda: "x")
def unfair() -> None:
    """Be in one that is not."""


@task(queue_name="bulk")
def plain() -> None:
    """Have no key."""


def test_a_fair_key_in_a_queue_that_is_not_fair_is_a_warning(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {each.module_path: each for each in (fair, unfair, plain)}
    monkeypatch.setattr(registry, "_registered", known)
    settings.TASKS = backends(default={"fair_queues": ["mail"]})
    [found] = check_fair_keys(None)
    assert (found.id, found.msg, found.hint) == (
        "steady_queue.W018",
        "The fair keys of these tasks have no effect, because their queue 'bulk' is not fair: "
        f"{__name__}.unfair.",
        "Add 'bulk' to TASKS['default']['OPTIONS']['fair_queues'], or leave out fair_key. If the "
        "tasks are enqueued into other queues only, add 'steady_queue.W018' to "
        "SILENCED_SYSTEM_CHECKS.",
    )
    settings.TASKS = backends(default={"fair_queues": "*"})
    assert check_fair_keys(None) == []
