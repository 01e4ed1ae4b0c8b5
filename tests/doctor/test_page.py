"""Keeps docs/doctor.md true: it lists each code, and nothing else."""

from __future__ import annotations

import re

import pytest

from steady_queue_core.doctor.codes import CODES
from steady_queue_core.models import Process

from .. import documents
from ..command_line.invoking import invoke
from .ward import CAUSES, HOUR, Ward

PAGE = documents.page("doctor.md")
#: What says that a code is one: its place in a call, or in a class.
USE = re.compile(
    r'(?:\b(?:problem|warning|info|Observation|Finding)\(\s*|code = )"([a-z]+(?:-[a-z]+)+)"'
    r'|else "([a-z]+(?:-[a-z]+)+)"'
)


def used_codes() -> set[str]:
    sources = [
        *documents.WORKSPACE.glob("steady_queue_core/steady_queue_core/doctor/*.py"),
        *documents.WORKSPACE.glob("steady_queue_core/steady_queue_core/features/*/findings.py"),
        documents.WORKSPACE / "steady_queue_core/steady_queue_core/dialects/observation.py",
        *documents.WORKSPACE.glob("steady_queue_*/steady_queue_*/examination.py"),
    ]
    return {one or other for path in sources for one, other in USE.findall(path.read_text())}


def test_each_code_has_a_row_and_a_place_in_the_order() -> None:
    documented = documents.rows(PAGE.read_text())
    assert set(documented) == set(CODES)
    assert len(CODES) == len(set(CODES))


def test_each_code_that_is_found_is_known() -> None:
    assert used_codes() <= set(CODES)
    assert {each.code for each in CAUSES} <= used_codes()


def normal(text: str) -> list[list[str]]:
    return [re.sub(r"\d+ (ms|s|min|h)( \d+ (ms|s|min))?", "T", line).split() for line in
            text.strip().splitlines()]  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_the_examples_print_what_is_shown() -> None:
    ward = Ward("default")
    ward.stop("worker")
    ward.start("worker", queues=["default"], threads=3)
    ward.start("worker", "worker-2", queues=["default"], threads=3)
    ward.age(Process.objects.filter(name="worker-2"), last_heartbeat_at=HOUR)
    [first, _] = ward.ready(2, "mail")
    for block in documents.blocks(PAGE, "console"):
        command, _, shown = block.partition("\n")
        arguments = command.partition("steady_queue ")[2].replace("doctor 1", f"doctor {first}")
        told = invoke(*arguments.split())
        assert told.code == 1
        assert normal(told.out) == normal(shown.replace("Job 1 ", f"Job {first} "))
