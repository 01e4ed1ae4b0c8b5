"""Which jobs a worker's list of queues takes, in which order, on every database."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from steady_queue_core.dialects import QueueSelector

from .everywhere import Jobs, on_every_database

#: Names that a pattern of SQL, or a collation, takes for each other.
ALIKE = ("a%b", "a_b", "aXb", "a\\b", "A%b", "á_b", "a%", "a", "a ", "[a]b")

PREFIXES = {
    "a%*": ["a%", "a%b"], "a_*": ["a_b"], "a\\*": ["a\\b"], "A*": ["A%b"], "á*": ["á_b"],
    "[a]*": ["[a]b"],
}  # fmt: skip


def taken(jobs: Jobs, *patterns: str) -> list[str]:
    """Return the queues of the jobs that a worker with this list is given, in their order."""
    selector = QueueSelector.of(patterns)
    _, claims = jobs.dialect.settle_and_claim(jobs.connection, [], jobs.worker, selector, 100)
    return [claim.queue_name for claim in claims]


@on_every_database
@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        # The order of the list, whatever the priorities; within a prefix by name.
        (["beta*", "beta1"], ["beta", "beta1", "beta2"]),
        (["beta2", "beta*"], ["beta2", "beta", "beta1"]),
        (["beta1", "beta*", "b*"], ["beta1", "beta", "beta2", "basic"]),
        (["beta*", "be*", "beta*"], ["beta", "beta1", "beta2"]),
        (["beta1", "alpha"], ["beta1", "alpha"]),
        (["bet"], []),
        (["nothing*", "alpha"], ["alpha"]),
        # Anywhere in the list a * means all of them, by priority.
        (["alpha", "*"], ["beta2", "beta1", "basic", "beta", "alpha"]),
        (["*", "!beta*"], ["basic", "alpha"]),
        (["!beta"], ["beta2", "beta1", "basic", "alpha"]),
        (["b*", "!beta1", "!alpha"], ["basic", "beta", "beta2"]),
    ],
)
def test_patterns_that_overlap_take_each_queue_once_where_it_is_named_first(
    using: str, patterns: list[str], expected: list[str]
) -> None:
    jobs = Jobs(using)
    for rank, name in enumerate(["beta2", "beta1", "basic", "beta", "alpha"]):
        jobs.ready(queue_name=name, rank=rank)
    assert taken(jobs, *patterns) == expected


@on_every_database
def test_every_character_but_the_last_star_means_itself(using: str) -> None:
    jobs = Jobs(using)
    for name in ALIKE:
        jobs.ready(queue_name=name)
    for pattern, expected in PREFIXES.items():
        assert taken(jobs, pattern) == expected, pattern
    assert taken(jobs, "a ") == ["a "]
    assert taken(jobs, "ax*", "AXB") == []
    assert taken(jobs, "a*") == ["a", "aXb"]


@on_every_database
def test_an_exclusion_leaves_out_exactly_what_the_entry_matches(using: str) -> None:
    jobs = Jobs(using)
    names = {name: [name] for name in ALIKE if name != "a "}
    for entry, expected in {**PREFIXES, **names}.items():
        for name in ALIKE:
            jobs.ready(queue_name=name)
        others = [name for name in ALIKE if name not in expected]
        assert sorted(taken(jobs, f"!{entry}")) == sorted(others), entry
        assert sorted(taken(jobs, "*")) == sorted(expected)


@pytest.mark.parametrize("queues", ["*_some", "a*b", "ok,**"])
def test_the_command_refuses_wildcards_elsewhere_and_says_how_to_mend_them(queues: str) -> None:
    with pytest.raises(CommandError) as refused:
        call_command("steady_queue", queues=queues)
    message = str(refused.value)
    assert repr(queues.rpartition(",")[2]) in message
    assert "has a '*' before its end" in message
    assert "a prefix such as 'mail*', or '*' for all queues" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exclude_queues": "!a"}, "has a '!' too many"),
        ({"exclude_queues": "a,"}, "is empty"),
        ({"exclude_queues": "*"}, "excludes all queues"),
        ({"queues": "a,b", "exclude_queues": " b"}, "the entry 'b' matches nothing"),
    ],
)
def test_the_command_refuses_exclusions_that_cannot_work(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("steady_queue", **options)
