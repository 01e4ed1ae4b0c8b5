"""The pages of processes that have not ended by themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.test import RequestFactory

from steady_queue_core.admin import JobAdmin, ProcessEndAdmin
from steady_queue_core.dialects.database import Database
from steady_queue_core.models import Job, Process, ProcessEnd
from steady_queue_core.models.process import register

from .places import Scene, on_every_database
from .visitor import EVERYTHING, Visitor


def ended(using: str, number: int = 1, jobs: Any = (), **fields: Any) -> ProcessEnd:
    present = Database.of(using).storable_time()
    details = {
        "why": "It was killed by SIGKILL.", "exit_code": -9, "recovered_by": "supervisor-7",
        "queues": ["mail", "im*"], "threads": 3, "version": "1.2",
        "endings": {"failed": 1, "released": 2}, "jobs": list(jobs),
    }  # fmt: skip
    given = {
        "process_id": number, "name": f"worker-{number}", "kind": "worker", "pid": 41,
        "hostname": "web-1", "supervisor_id": 9, "started_at": present,
        "last_heartbeat_at": present, "ended_at": present, "reason": "signal",
        "held": 3, "lost": 1, "details": json.dumps(details),
    }  # fmt: skip
    return ProcessEnd.objects.using(using).create(**given | fields)


def job(job_id: int, ending: str = "failed", *, lost: bool = True) -> dict[str, Any]:
    return {"id": job_id, "task": "shop.send", "queue": "mail", "ending": ending, "lost": lost}


@on_every_database
def test_the_list_has_the_latest_first_and_its_pages_go_on(using: str, scene: Scene) -> None:
    for number in range(1, 53):
        ended(using, number)
    visitor = Visitor("view_process", "view_processend")
    page = visitor.list("processend")
    assert page.source.index("worker-52") < page.source.index("worker-51")
    assert "worker-2<" not in page.source
    assert "killed by a signal 41 on web-1 mail, im* 3 1" in page
    following = visitor.see(visitor.url("processend") + page.link("Next"))
    assert "worker-2 " in following
    assert "Add" not in page
    assert 'href="/admin/steady_queue/processend/"' in visitor.list("process").source


@on_every_database
def test_the_page_tells_when_why_and_what_became_of_its_jobs(using: str, scene: Scene) -> None:
    [there] = scene.ready()
    gone = there + 100
    row = ended(using, 1, [job(there), job(gone, "released", lost=False)])
    visitor = Visitor("view_processend", "view_job")
    page = visitor.see(visitor.url("processend", "change", row.pk))
    for words in (
        "Why It was killed by SIGKILL.", "Exit status -9", "Queues mail, im*", "Host web-1",
        "Recovered by supervisor-7", "Claimed jobs 3", "Attempts lost 1",
        "What became of the jobs 1 failed, 2 given back",
        f"#{there} shop.send mail lost failed", f"#{gone} (deleted) shop.send mail given back",
        "1 more are not named here.",
    ):  # fmt: skip
        assert words in page, page.text
    assert f'href="/admin/steady_queue/job/{there}/change/"' in page.source


@pytest.mark.django_db(transaction=True)
def test_only_jobs_that_the_user_may_see_are_named(scene: Scene, rf: RequestFactory) -> None:
    mine, theirs = scene.ready(2)

    class Mine(JobAdmin):
        def get_queryset(self, request: Any) -> Any:
            return super().get_queryset(request).filter(pk=mine)

    site = AdminSite(name="narrow")
    site.register(Job, Mine)
    site.register(ProcessEnd, ProcessEndAdmin)
    row = ended("default", 1, [job(mine), job(theirs), job(theirs + 100)])
    page: Any = site._registry[ProcessEnd]
    from steady_queue_core.listings.process_ends import ListedEnd

    table = page._jobs(rf.get("/"), ListedEnd(row))
    assert len(table.rows) == 1
    assert f"#{mine}" in table.rows[0][0]


@pytest.mark.django_db(transaction=True)
def test_each_user_sees_what_is_permitted(scene: Scene) -> None:
    row = ended("default")
    without = Visitor("view_process")
    assert without.list("processend").status == 403
    assert without.see(without.url("processend", "change", row.pk)).status == 403
    assert "Ended processes" not in without.list("process")
    visitor = Visitor(*EVERYTHING)
    url = visitor.url("processend", "change", row.pk)
    assert visitor.client.post(url, {}).status_code == 405
    assert visitor.client.get(visitor.url("processend", "add")).status_code == 403
    assert visitor.client.post(visitor.url("processend", "delete", row.pk)).status_code == 403


@on_every_database
def test_a_process_leads_to_its_supervisor_there_or_ended(using: str, scene: Scene) -> None:
    boss = register(
        using, kind="supervisor", name="boss", pid=1, hostname="web-1", supervisor_id=None,
        metadata="{}",
    )  # fmt: skip
    row = ended(using, 1, supervisor_id=boss.id)
    visitor = Visitor("view_process", "view_processend")
    url = visitor.url("processend", "change", row.pk)
    assert f'/process/{boss.id}/change/">boss (process {boss.id})</a>' in visitor.see(url).source
    # Who may not see processes does not learn their names.
    assert "boss" not in Visitor("view_processend", "view_job").see(url)
    Process.objects.using(using).filter(pk=boss.id).delete()
    assert f"Started by process {boss.id} " in visitor.see(url)
    gone = ended(using, boss.id, name="boss", kind="supervisor", supervisor_id=None)
    assert f'/processend/{gone.pk}/change/">boss (process' in visitor.see(url).source


HOSTILE = (
    "", "[]", "{", "[" * 100_000,
    json.dumps({"jobs": [1, {"id": "x"}, {"id": 2**70}, {"id": -1, "task": None}], "queues": 7}),
    json.dumps({"jobs": {"id": 1}, "endings": {"failed": "x", "lost": 3}, "why": ["<b>"]}),
    json.dumps({"endings": [], "exit_code": "<script>", "recovered_by": "\x1b[2J\ud800"}),
)  # fmt: skip


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("details", HOSTILE)
def test_no_row_breaks_a_page(details: str, scene: Scene) -> None:
    row = ended(
        "default", details=details, name="<b>\x1b[31m", reason="<i>", kind="<u>", hostname="\x07"
    )
    visitor = Visitor("view_processend", "view_job")
    for page in (
        visitor.list("processend"),
        visitor.see(visitor.url("processend", "change", row.pk)),
    ):
        assert page.status == 200
        assert not {"<b>", "<i>", "<u>", "<script>alert"} & set(page.source.split())
        assert "\x1b" not in page.source
        assert "<b>\\x1b" not in page.source
