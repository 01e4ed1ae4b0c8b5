"""Recurring tasks in real processes: each slot once, whoever dies; no scheduler without need."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from steady_queue_core.processes.supervisor.launch import skips_recurring

from ..servers.breakable import BreakableServer
from . import proc
from .conftest import MakeProject
from .harness import Supervisor
from .scenarios import freeze, stop_all, thaw, verdict
from .schedules import (
    EVERY_SECOND,
    gaps,
    mirrored,
    scheduled,
    schedulers,
    slots,
    take_over,
    wait_scheduler,
    wait_slots,
    write_schedules,
)
from .starvation import watch_starvation
from .storage import SQLiteFile
from .waiting import wait_for

# --- each slot once --------------------------------------------------------------------------


def test_two_schedulers_enqueue_each_slot_once(make_project: MakeProject) -> None:
    project = scheduled(make_project)
    supervisors = [project.start(), project.start()]
    wait_for(lambda: len(schedulers(project)) == 2, 20, "two schedulers")
    before = len(slots(project))
    with watch_starvation(project.folder) as starvation:
        found = wait_slots(project, before + 8)[before:]
    stop_all(project)
    assert project.start("--drain").wait_exit() == 0
    assert not gaps(found) or starvation.worst > 0.3
    take_over(project)
    assert verdict(project) == []
    assert len(project.attempts()) == project.count("jobs") == len(slots(project))
    for supervisor in supervisors:
        assert "Traceback" not in supervisor.errors()


#: Kills the scheduler when it has inserted a job and not committed yet; once for each file.
KILLED_HALFWAY = (
    EVERY_SECOND
    + """
import os, signal
from pathlib import Path
from steady_queue_core.compat import task_enqueued

def die(**kwargs):
    try:
        Path("die").unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)

task_enqueued.connect(die, weak=False)
"""
)


@pytest.mark.thorough
def test_a_killed_scheduler_loses_only_slots_of_its_absence_and_doubles_none(
    make_project: MakeProject,
) -> None:
    project = scheduled(make_project, KILLED_HALFWAY)
    supervisor = project.start()
    absences = []
    victim = wait_scheduler(project)
    for halfway in (False, True, False):
        wait_slots(project, len(slots(project)) + 1)
        if halfway:
            (project.folder / "die").touch()
            wait_for(lambda pid=victim: not proc.alive(pid), 10, "its death halfway")
        else:
            supervisor.send(signal.SIGKILL, victim)
        # The slot that it died over was up to a second old.
        died = time.time() - 1
        victim = wait_scheduler(project, other_than=victim)
        absences.append((died, time.time() + 1))
    wait_slots(project, len(slots(project)) + 1)
    stop_all(project)
    assert project.start("--drain").wait_exit() == 0
    found = slots(project)
    lost = [slot for slot in gaps(found) if not any(a <= slot <= b for a, b in absences)]
    assert lost == []
    assert max(end - start for start, end in absences) < 2 + 3
    take_over(project)
    assert verdict(project) == []
    assert len(project.attempts()) == project.count("jobs") == len(found)
    assert supervisor.errors().count("was killed by SIGKILL") == 3


def test_slots_missed_by_a_frozen_scheduler_are_not_made_up_for(make_project: MakeProject) -> None:
    project = scheduled(make_project)
    supervisor = project.start()
    pid = wait_scheduler(project)
    wait_slots(project, 1)
    freeze(project, supervisor, pid)
    last = slots(project)[-1]
    wait_for(lambda: time.time() > last + 2.2, 10, "missed slots")
    thawed = int(time.time())
    thaw(supervisor, pid)
    wait_for(lambda: slots(project)[-1] > thawed, 10, "a later slot")
    # The slot that it was waiting for is late, and runs; those after it are left out.
    assert slots(project).count(last + 1) == 1
    assert set(range(last + 2, thawed + 1)).isdisjoint(slots(project))
    [line] = [line for line in supervisor.errors().splitlines() if "missed slots" in line]
    missed = datetime.fromtimestamp(last + 2, UTC)
    assert f"Recurring task 'tick' missed slots from {missed}" in line
    assert "WARNING" in line
    stop_all(project)


@pytest.mark.server("postgres")
@pytest.mark.parametrize("fault", ["freeze", pytest.param("kill", marks=pytest.mark.thorough)])
def test_slots_missed_while_the_database_was_away_are_put_down_to_that(
    make_project: MakeProject, breakable_servers: dict[str, BreakableServer], fault: str
) -> None:
    server = breakable_servers["postgres"]
    project = scheduled(make_project, at=server.address)
    supervisor = project.start()
    try:
        wait_slots(project, 1)
        getattr(server, fault)()
        time.sleep(3.2)  # For some slots to pass.
    finally:
        server.restore()
    wait_for(lambda: "missed slots" in supervisor.errors(), 20, "word of the slots")
    lines = [line for line in supervisor.errors().splitlines() if "missed slots" in line]
    assert {line.rpartition(": ")[2] for line in lines} == {"the database was away"}
    stop_all(project)


TELLING = """
    from steady_queue_core import signals

    def note(key, run_at=None, since=None, **kwargs):
        what, slot = ("ran", run_at) if run_at else ("missed", since)
        with open(BASE_DIR / "told.log", "a") as file:
            print(key, what, int(slot.timestamp()), file=file)

    signals.recurring_enqueued.connect(note)
    signals.recurring_missed.connect(note)
"""


def test_slots_missed_while_nothing_ran_are_told_and_not_made_up_for(
    make_project: MakeProject,
) -> None:
    project = scheduled(make_project, extra=TELLING)
    first = project.start()
    wait_slots(project, 1)
    stop_all(project)
    last = slots(project)[-1]
    wait_for(lambda: time.time() > last + 2.2, 10, "missed slots")
    started = time.time()
    second = project.start()
    wait_slots(project, len(slots(project)) + 1)
    stop_all(project)
    new = [slot for slot in slots(project) if slot > last]
    assert min(new) > started
    missed = datetime.fromtimestamp(last + 1, UTC)
    assert f"Recurring task 'tick' missed slots from {missed}" in second.errors()
    assert "missed" not in first.errors()
    told = (project.folder / "told.log").read_text().splitlines()
    assert [each for each in told if "ran" in each] == [
        f"tick ran {slot}" for slot in slots(project)
    ]
    assert [each for each in told if "missed" in each] == [f"tick missed {last + 1}"]


CATCHING_UP = """
from datetime import timedelta
from steady_queue_core import recurring
from tests.faultapp.tasks import work

EACH = timedelta(seconds=1)
recurring(schedule=EACH, key="last", catch_up="last")(work)
recurring(schedule=EACH, key="all", catch_up=timedelta(hours=1))(work)
recurring(schedule=EACH, key="tick")(work)
"""


def test_slots_missed_while_nothing_ran_are_made_up_for_as_the_schedule_says(
    make_project: MakeProject,
) -> None:
    project = scheduled(make_project, CATCHING_UP)
    project.start()
    wait_slots(project, 1)
    stop_all(project)
    last = max(slots(project, key)[-1] for key in ("last", "all", "tick"))
    wait_for(lambda: time.time() > last + 5, 10, "missed slots")
    started = int(time.time())
    project.start()
    wait_for(lambda: slots(project)[-1] > started, 20, "slots of the new scheduler")
    stop_all(project)
    every = slots(project, "all")
    assert every == list(range(every[0], every[-1] + 1))
    # Of those missed the last one alone.
    assert set(range(last + 1, started)).isdisjoint(slots(project, "last"))
    assert set(range(last + 1, started + 1)).isdisjoint(slots(project))
    assert len(slots(project, "last")) > 1


# --- one that fails --------------------------------------------------------------------------

#: What can only be known when the time has come: the limits of the backend, and what has become of
#: an argument since.
SOME_FAIL = """
from datetime import timedelta
from steady_queue_core import recurring
from tests.faultapp.tasks import note, work

EACH = timedelta(seconds=1)
changing = [0.0]
recurring(schedule=EACH, key="a fine one")(work)
recurring(schedule=EACH, key="b too large", args=["x" * 2000])(work)
recurring(schedule=EACH, key="c changed", args=[changing])(work)
recurring(schedule=EACH, key="d on commit")(work.using(enqueue_on_commit=True))
recurring(schedule=EACH, key="e elsewhere", queue_name="more", priority=7)(note)
changing.append(object())
"""


def test_a_recurring_task_that_cannot_be_enqueued_does_not_stop_the_others(
    make_project: MakeProject,
) -> None:
    small = "TASKS['default']['OPTIONS'] = {'max_payload_bytes': 1000}"
    project = scheduled(make_project, SOME_FAIL, extra=small)
    supervisor = project.start()
    for key in ("a fine one", "d on commit", "e elsewhere"):
        wait_slots(project, 2, key)
    stop_all(project)
    errors = supervisor.errors()
    for key in ("b too large", "c changed"):
        assert f"Recurring task {key!r} could not be enqueued" in errors
        assert slots(project, key) == []
    assert errors.count("Started scheduler-") == 1
    assert project.start("--drain").wait_exit() == 0
    take_over(project)
    assert verdict(project) == []
    kinds = project.query('SELECT DISTINCT queue_name, "rank" FROM steady_queue_jobs')
    assert set(kinds) == {("default", 0), ("more", -7)}


# --- which tasks -----------------------------------------------------------------------------

TWO_DATABASES = """
from importlib.util import find_spec

FRAMEWORK = "django.tasks" if find_spec("django.tasks") else "django_tasks"
DATABASES["other"] = {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "other.sqlite3"}
TASKS["elsewhere"] = {
    "BACKEND": "steady_queue_core.backend.SteadyQueueBackend",
    "QUEUES": [],
    "OPTIONS": {"database": "other"},
}
TASKS["nowhere"] = {"BACKEND": FRAMEWORK + ".backends.dummy.DummyBackend"}
"""

ONE_EACH = """
from datetime import timedelta
from steady_queue_core import recurring
from tests.faultapp.tasks import work

recurring(schedule=timedelta(seconds=1), key="here")(work)
recurring(schedule=timedelta(seconds=1), key="there")(work.using(backend="elsewhere"))
recurring(schedule=timedelta(seconds=1), key="lost")(work.using(backend="nowhere"))
"""


def test_a_supervisor_schedules_the_tasks_of_its_own_database(
    make_project: MakeProject, template: Path
) -> None:
    project = scheduled(make_project, ONE_EACH, extra=TWO_DATABASES)
    (project.folder / "other.sqlite3").write_bytes(template.read_bytes())
    here = project.start("--backend", "default")
    wait_slots(project, 2, "here")
    assert here.stop() == 0
    assert slots(project, "there") == []
    assert [row[0] for row in mirrored(project)] == ["here"]
    backends = project.query("SELECT DISTINCT backend_name FROM steady_queue_jobs")
    assert backends == [("default",)]
    project.storage = SQLiteFile(project.folder / "other.sqlite3")
    assert project.count("jobs") == 0
    there = project.start("--backend", "elsewhere")
    wait_slots(project, 2, "there")
    assert there.stop() == 0
    assert slots(project, "here") == []
    assert [row[0] for row in mirrored(project)] == ["there"]
    backends = project.query("SELECT DISTINCT backend_name FROM steady_queue_jobs")
    assert backends == [("elsewhere",)]


SCHEDULES = """
from steady_queue_core import recurring
from tests.faultapp.tasks import work

recurring(schedule="0 3 * * *", key="kept", timezone="Europe/Berlin")(work)
recurring(schedule="@hourly", key="changed", priority=-5, description="Look after it.")(work)
recurring(schedule="@daily", key="dropped", queue_name="night")(work)
"""

OTHER_SCHEDULES = """
from steady_queue_core import recurring
from tests.faultapp.tasks import work, work_again

recurring(schedule="0 3 * * *", key="kept", timezone="Europe/Berlin")(work)
recurring(schedule="30 * * * *", key="changed", queue_name="day")(work_again)
recurring(schedule="@weekly", key="new")(work)
"""

WORK = "tests.faultapp.tasks.work"


def test_the_table_mirrors_the_code(make_project: MakeProject) -> None:
    project = scheduled(make_project, SCHEDULES)

    def rows_after_a_start() -> list[tuple[Any, ...]]:
        supervisor = project.start()
        wait_scheduler(project)
        supervisor.wait_ready(1)
        wait_for(lambda: mirrored(project) != before, 10, "a change of the table")
        assert supervisor.stop() == 0
        return mirrored(project)

    before: list[tuple[Any, ...]] = []
    before = rows_after_a_start()
    assert before == [
        ("changed", "@hourly", WORK, "default", -5, "Look after it."),
        ("dropped", "@daily", WORK, "night", 0, ""),
        ("kept", "0 3 * * *", WORK, "default", 0, ""),
    ]
    write_schedules(project, OTHER_SCHEDULES)
    again = "Work that may start again when its worker dies."
    assert rows_after_a_start() == [
        ("changed", "30 * * * *", f"{WORK}_again", "day", 0, again),
        ("kept", "0 3 * * *", WORK, "default", 0, ""),
        ("new", "@weekly", WORK, "default", 0, ""),
    ]


def test_the_table_empties_when_the_code_has_no_schedule_left(make_project: MakeProject) -> None:
    project = scheduled(make_project, SCHEDULES)
    first = project.start()
    wait_for(lambda: len(mirrored(project)) == 3, 20, "three rows")
    assert first.stop() == 0
    write_schedules(project, "")
    last = project.start()
    last.wait_ready(1)
    wait_for(lambda: mirrored(project) == [], 5, "an empty table")
    assert last.stop() == 0


# --- no scheduler, and its end ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "under"),
    [(["--skip-recurring"], []), ([], ["env", "STEADY_QUEUE_SKIP_RECURRING=True"])],
    ids=["option", "environment"],
)
def test_with_skip_recurring_nothing_is_scheduled(
    make_project: MakeProject, arguments: list[str], under: list[str]
) -> None:
    project = scheduled(make_project)
    supervisor = project.start(*arguments, under=under)
    supervisor.wait_ready(1)
    [job] = project.enqueue("work", [1.1])
    project.wait_done(10)
    stop_all(project)
    assert verdict(project) == []
    assert "Started worker-" in supervisor.errors()
    assert "scheduler" not in supervisor.errors() + supervisor.output()
    assert slots(project) == []
    assert project.count("jobs") == len([job])


@pytest.mark.parametrize(
    ("value", "skips"),
    [("1", True), (" yes", True), ("ON", True), ("", False), ("0", False), ("False", False),
     ("off", False), ("no", False)],
)  # fmt: skip
def test_the_environment_says_whether_to_skip(
    monkeypatch: pytest.MonkeyPatch, value: str, skips: bool
) -> None:
    monkeypatch.setenv("STEADY_QUEUE_SKIP_RECURRING", value)
    assert skips_recurring() is skips
    monkeypatch.delenv("STEADY_QUEUE_SKIP_RECURRING")
    assert not skips_recurring()


def test_a_value_of_the_environment_that_is_neither_is_refused(make_project: MakeProject) -> None:
    project = scheduled(make_project)
    supervisor = project.start(under=["env", "STEADY_QUEUE_SKIP_RECURRING=maybe"])
    assert supervisor.wait_exit() == 1
    assert "STEADY_QUEUE_SKIP_RECURRING is 'maybe': set it to true or false" in supervisor.errors()


@pytest.mark.parametrize(
    ("only", "kinds"),
    [("work", {"worker"}), ("dispatch", {"dispatcher"}), ("schedule", {"scheduler"})],
)
def test_one_kind_of_process_can_run_alone(
    make_project: MakeProject, only: str, kinds: set[str]
) -> None:
    project = scheduled(make_project, dispatchers=[{}])
    supervisor = project.start("--only", only)
    wait_for(lambda: project.count("processes") == 2, 10, "one process")
    running = project.query("SELECT kind FROM steady_queue_processes")
    assert {kind for (kind,) in running} == {"supervisor", *kinds}
    assert supervisor.stop() == 0


def test_without_anything_to_run_it_says_so(make_project: MakeProject) -> None:
    project = make_project({"workers": [{"queues": "*"}], "dispatchers": []})
    supervisor = project.start("--only", "dispatch")
    assert supervisor.wait_exit() == 1
    assert "There is nothing to run" in supervisor.errors()


def test_a_drained_queue_is_not_filled_by_a_schedule(make_project: MakeProject) -> None:
    project = scheduled(make_project)
    project.enqueue("work", [1.1])
    supervisor = project.start("--drain")
    assert supervisor.wait_exit() == 0
    assert verdict(project) == []
    assert "Started worker-" in supervisor.errors()
    assert "scheduler" not in supervisor.errors() + supervisor.output()
    assert slots(project) == []


def time_to_end(supervisor: Supervisor, pid: int, told: int) -> float:
    """Return how long a process lived on after TERM was sent to ``told``."""
    began = time.monotonic()
    supervisor.send(signal.SIGTERM, told)
    wait_for(lambda: not proc.alive(pid), 10, f"the end of {pid}")
    return time.monotonic() - began


def test_a_scheduler_with_nothing_due_for_hours_stops_within_a_second(
    make_project: MakeProject,
) -> None:
    project = scheduled(make_project, SCHEDULES)
    supervisor = project.start()
    first = wait_scheduler(project)
    wait_for(lambda: len(mirrored(project)) == 3, 10, "its first round")
    alone = time_to_end(supervisor, first, first)
    second = wait_scheduler(project, other_than=first)
    with_all = time_to_end(supervisor, second, supervisor.pid)
    assert supervisor.wait_exit() == 0
    assert max(alone, with_all) < 1.0
    assert project.count("processes") == 0
    assert "Traceback" not in supervisor.errors()
