"""The weights of the keys of fair queues: their list, their forms, and where else they show."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connections

from steady_queue_core import shares, task
from steady_queue_core.models import Job, Share

from ..servers.kinds import KINDS
from .places import Scene, on_every_database, tasks_in
from .test_actions import confirm
from .test_sites import two_databases
from .visitor import EVERYTHING, Visitor

FAIR = {"fair_queues": {"mail": 1, "imports*": 10}}


@task(queue_name="mail", fair_key=lambda tenant: tenant)
def send(tenant: str) -> None:
    """Be in a fair queue."""


@pytest.fixture(autouse=True)
def _fair(scene: Scene, settings: Any) -> None:
    fair = tasks_in(scene.using)
    fair["default"]["OPTIONS"] |= FAIR
    settings.TASKS = fair


def weights(using: str) -> list[tuple[str, str, float]]:
    rows = Share.objects.using(using).order_by("queue_name", "key")
    return list(rows.values_list("queue_name", "key", "weight"))


def errors(page: Any) -> list[str]:
    found = re.findall(r'<ul class="errorlist[^>]*>(.*?)</ul>', page.source, re.DOTALL)
    return [re.sub(r"<[^>]*>", "", each).strip() for each in found]


@on_every_database
def test_a_key_gets_a_weight_another_one_and_none(using: str, scene: Scene) -> None:
    visitor = Visitor(*EVERYTHING)
    page = visitor.list("share")
    assert "addlink" in page.source
    given = {"queue_name": "mail", "key": "tenant-1", "weight": "5"}
    page = visitor.post(visitor.url("share", "add"), given)
    assert "was added successfully" in page.messages[0]
    assert weights(using) == [("mail", "tenant-1", 5.0)]
    assert shares.weight_of("mail", "tenant-1") == 5
    assert "mail tenant-1 5 in force" in visitor.list("share")

    row = Share.objects.using(using).get()
    url = visitor.url("share", "change", row.pk)
    page = visitor.see(url)
    assert 'name="weight" value="5.0"' in page.source
    assert 'name="key"' not in page.source
    page = visitor.post(url, {"weight": "2.5", "key": "tenant-2", "queue_name": "bulk"})
    assert "was changed successfully" in page.messages[0]
    assert weights(using) == [("mail", "tenant-1", 2.5)]

    url = visitor.url("share", "delete", row.pk)
    assert visitor.see(url).status == 200
    assert weights(using)
    page = visitor.post(url, {"post": "yes"})
    assert "was deleted successfully" in page.messages[0]
    assert weights(using) == []
    assert LogEntry.objects.count() == 3


@on_every_database
def test_keys_are_added_as_they_are(using: str, scene: Scene) -> None:
    visitor = Visitor(*EVERYTHING)
    for key in ("", " a ", "A", "a"):
        page = visitor.post(
            visitor.url("share", "add"), {"queue_name": "mail", "key": key, "weight": "2"}
        )
        assert page.messages, errors(page)
    assert {key for _, key, _ in weights(using)} == {"", " a ", "A", "a"}
    assert "(jobs without a key)" in visitor.list("share")


@on_every_database
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"weight": "0.5"}, "Ensure this value is greater than or equal to 1."),
        ({"weight": "1001"}, "Ensure this value is less than or equal to 1000."),
        ({"weight": "nan"}, "Enter a number."),
        ({"weight": "inf"}, "Enter a number."),
        ({"weight": ""}, "This field is required."),
        ({"queue_name": ""}, "This field is required."),
        ({"queue_name": "mial"}, "is not fair: its keys have no weights."),
        ({"queue_name": "mail "}, "contains control or other invisible characters"),
        ({"key": "a\0b"}, "Null characters are not allowed."),
        ({"key": "x" * 256}, "Ensure this value has at most 255 characters"),
        ({"key": "taken"}, "This key has a weight of its own already. Change that one."),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(
    using: str, given: dict[str, str], told: str, scene: Scene
) -> None:
    shares.set_weight("mail", "taken", 7)
    visitor = Visitor(*EVERYTHING)
    wanted = {"queue_name": "mail", "key": "a", "weight": "5", **given}
    page = visitor.post(visitor.url("share", "add"), wanted)
    [error] = [each for each in errors(page) if "Please correct" not in each]
    assert told in error
    assert weights(using) == [("mail", "taken", 7.0)]


@on_every_database
def test_selected_keys_get_the_default_weight(using: str, scene: Scene) -> None:
    for number in range(4):
        shares.set_weight("mail", number, 2)
    visitor = Visitor(*EVERYTHING)
    keys = list(Share.objects.using(using).order_by("pk").values_list("pk", flat=True))
    page = visitor.act("reset", [keys[0], keys[2], "x", "9" * 30], "share")
    assert "Give 2 keys the default weight of the queue again?" in page
    assert len(weights(using)) == 4
    page = confirm(visitor, page, visitor.url("share"))
    assert page.messages == ["Gave 2 keys the default weight."]
    assert [key for _, key, _ in weights(using)] == ["1", "3"]
    page = visitor.act("reset", ..., "share", q="3")
    confirm(visitor, page, visitor.url("share"), q="3")
    assert [key for _, key, _ in weights(using)] == ["1"]
    confirm(visitor, visitor.act("reset", ..., "share"), visitor.url("share"))
    assert weights(using) == []


@on_every_database
def test_queues_and_keys_are_found_by_their_names(using: str, scene: Scene) -> None:
    for queue, key in (("mail", "a"), ("mail", "b"), ("imports", "a")):
        shares.set_weight(queue, key, 2)
    visitor = Visitor(*EVERYTHING)
    assert "2 shares" in visitor.list("share", q="mail")
    assert "2 shares" in visitor.list("share", q="a")
    assert "0 shares" in visitor.list("share", q="mai")


@pytest.mark.django_db
def test_a_weight_without_effect_says_why(scene: Scene, settings: Any) -> None:
    shares.set_weight("mail", "a", 2)
    Share.objects.create(queue_name="mail", key="b", weight=0)
    page = Visitor(*EVERYTHING).list("share")
    assert "mail a 2 in force" in page
    assert "mail b 0.0 no effect: the weight is not valid" in page
    settings.TASKS = tasks_in("default")
    assert "mail a 2 no effect: the queue is not fair" in Visitor(*EVERYTHING).list("share")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("codenames", "may"),
    [
        (("view_share",), ""),
        (("view_share", "add_share"), "add"),
        (("view_share", "change_share"), "change"),
        (("view_share", "delete_share"), "delete"),
    ],
)
def test_each_thing_needs_its_permission(
    codenames: tuple[str, ...], may: str, scene: Scene
) -> None:
    shares.set_weight("mail", "a", 2)
    row = Share.objects.get()
    visitor = Visitor(*codenames)
    assert visitor.list("share").status == 200
    page = visitor.see(visitor.url("share", "change", row.pk))
    assert page.status == 200
    assert ('name="weight"' in page.source) == (may == "change")
    assert "mail" in page
    assert "deletelink" in page.source if may == "delete" else "deletelink" not in page.source
    added = {"queue_name": "mail", "key": "b", "weight": "3"}
    assert visitor.post(visitor.url("share", "add"), added).status == (200 if may == "add" else 403)
    page = visitor.post(visitor.url("share", "change", row.pk), {"weight": "4"})
    assert page.status == (200 if may == "change" else 403)
    visitor.act("reset", [row.pk], "share", confirmed="yes")
    page = visitor.post(visitor.url("share", "delete", row.pk), {"post": "yes"})
    assert page.status == (200 if may == "delete" else 403)
    assert (
        weights("default")
        == {
            "": [("mail", "a", 2)],
            "add": [("mail", "a", 2), ("mail", "b", 3)],
            "change": [("mail", "a", 4)],
            "delete": [],
        }[may]
    )


@pytest.mark.parametrize("other", [two_databases(alias) for alias in KINDS])
def test_the_pages_stay_with_their_database(other: str, settings: Any) -> None:
    both = tasks_in("default", other)
    for each in both.values():
        each["OPTIONS"] |= FAIR
    settings.TASKS = both
    shares.set_weight("mail", "a", 2, using=other)
    visitor = Visitor(*EVERYTHING, database=other)
    page = visitor.list("share")
    # Those before it are of the index beside the page.
    *_, add = re.findall(r'href="([^"]*)" class="addlink"', page.source)
    assert f"database={other}" in add
    assert visitor.see(add).status == 200
    page = visitor.post(
        visitor.url("share", "add"), {"queue_name": "mail", "key": "b", "weight": "3"}
    )
    assert "mail b 3" in page
    assert f"database={other}" in page.response.redirect_chain[-1][0]
    assert weights("default") == []
    assert weights(other) == [("mail", "a", 2), ("mail", "b", 3)]
    key = Share.objects.using(other).get(key="a").pk
    page = visitor.see(visitor.url("share", "change", key))
    [delete] = re.findall(r'href="([^"]*)" class="deletelink"', page.source)
    assert f"database={other}" in delete
    page = visitor.post(visitor.url("share", "change", key), {"weight": "4"})
    assert "mail a 4" in page
    page = visitor.post(visitor.url("share", "delete", key), {"post": "yes"})
    assert f"database={other}" in page.response.redirect_chain[-1][0]
    assert weights(other) == [("mail", "b", 3)]


@pytest.mark.django_db
@pytest.mark.parametrize("weight", ["'many'", "x'00ff'", "NULL", "9e999", "-1", "'<b>'"])
def test_a_weight_that_is_no_number_can_be_mended_and_deleted(weight: str, scene: Scene) -> None:
    nasty = "<i>\x1b[31m\u202e"
    for key in ("a", nasty):
        shares.set_weight("mail", key.replace("\x1b", "e"), 2)
    with connections["default"].cursor() as cursor:
        cursor.execute("UPDATE steady_queue_shares SET key = %s WHERE key <> 'a'", [nasty])
        if weight != "NULL":
            cursor.execute(f"UPDATE steady_queue_shares SET weight = {weight}")
    looking, visitor = Visitor("view_share"), Visitor(*EVERYTHING)
    for row in Share.objects.all():
        for each in (looking, visitor):
            for name in ("change", "history"):
                page = each.see(each.url("share", name, row.pk))
                assert page.status == 200
                assert "\x1b" not in page.source
                assert "\u202e" not in page.source
                assert "<i>" not in page.source
        assert visitor.see(visitor.url("share", "delete", row.pk)).status == 200
        page = visitor.post(visitor.url("share", "change", row.pk), {"weight": "3"})
        assert page.messages, errors(page)
        assert "\u202e" not in page.source
        page = visitor.post(visitor.url("share", "delete", row.pk), {"post": "yes"})
        assert "was deleted successfully" in page.messages[0]
    assert not Share.objects.exists()


@on_every_database
def test_the_page_of_a_job_shows_its_key(using: str, scene: Scene) -> None:
    job = send.enqueue("tenant-1").id
    other = send.using(queue_name="plain").enqueue("tenant-1").id
    visitor = Visitor("view_job")
    assert "Fair key tenant-1" in visitor.see(visitor.url("job", "change", job))
    assert "Fair key" not in visitor.see(visitor.url("job", "change", other))
    Job.objects.using(using).update(metadata='{"fair":["<b>"]}')
    assert "Fair key" not in visitor.see(visitor.url("job", "change", job))


@on_every_database
def test_the_list_of_queues_says_which_are_fair(using: str, scene: Scene, settings: Any) -> None:
    send.enqueue("tenant-1")
    scene.ready(1, "plain"), scene.ready(1, "imports-7")
    visitor = Visitor("view_queue")
    page = visitor.list("pause")
    assert "Shared fairly" in page
    assert re.search(r"imports-7 open 1 \d+ m?s weight 10", page.text)
    assert re.search(r"mail open 1 \d+ m?s weight 1", page.text)
    assert "Shared fairly weight 10" in visitor.see(visitor.url("pause", "change", "imports-7"))
    assert "Shared fairly" not in visitor.see(visitor.url("pause", "change", "plain"))
    settings.TASKS = tasks_in(using)
    assert "Shared fairly" not in visitor.list("pause")
