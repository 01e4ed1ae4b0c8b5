"""The page of one batch: what it is, how far it is, its graph and its members, which a job may
wait for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from django.http import HttpRequest

from ..batches.members import members_of
from ..batches.nodes import Node, read_nodes
from ..batches.picture import MOST_NODES, Picture, read_picture, run_when_of
from ..dialects import Link, MemberState
from ..dialects.callbacks import NAMES
from ..dialects.membership import FAILURES, DependencyState
from ..listings.counts import BoundedCount, count_each
from ..listings.damage import DAMAGED, suppress_damage
from ..listings.keyset import Order, split_page
from ..listings.payloads import UNREADABLE, shown_value
from ..listings.visibility import is_unrestricted
from ..models import BatchMember, Dependency, Job, JobBatch
from ..tasks.metadata import JobMetadata
from . import databases, texts
from .base import QueueAdmin
from .batch_list import ENDED_WELL, Tally, created, finished, kind, progress, status
from .detail import Drawing, Fields, Section, Table, Text
from .graph_svg import graph_svg
from .job_texts import stored_section

#: What is shown of a job or batch that the user may not see.
HIDDEN = "(hidden)"
HEADINGS = ("Member", "Name", "Task", "State")
#: Most members on the page of a job that waits for them.
MOST_AWAITED = 20
#: Members on one page.
SHOWN = 50


def read_members(using: str, keys: Collection[int]) -> list[Node]:
    """Return the members with these ids, with stand-ins for damaged ones."""
    with suppress_damage():
        return read_nodes(using, keys)
    return [node for key in sorted(keys) for node in _read_one(using, key)]


def seen_by(page: QueueAdmin, request: HttpRequest, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes without what the user may not see on the pages of jobs and batches."""
    jobs, batches = page.rows(request, Job), page.rows(request, JobBatch)
    hidden = _beyond(jobs, {each.job_id for each in nodes})
    hidden_batches = _beyond(batches, {each.batch_id for each in nodes})
    return [
        replace(each, label=HIDDEN, task_path="", job_id=None, batch_id=None)
        if each.job_id in hidden or each.batch_id in hidden_batches
        else each
        for each in nodes
    ]


def member_row(page: QueueAdmin, request: HttpRequest, node: Node) -> tuple[Any, ...]:
    """Return what a table shows of a member."""
    link: Any = ""
    if node.batch_id is not None:
        link = page.batch_link(request, node.batch_id, node.kind)
    elif node.job_id is not None:
        link = page.job_link(request, node.job_id)
    task = texts.short_path(node.task_path) if node.task_path else ""
    return link, texts.named(node.label), task, node.state


def _beyond(rows: Any, keys: set[int | None]) -> set[int | None]:
    """Return those of ``keys`` whose rows are hidden."""
    keys = keys - {None}
    if not keys or is_unrestricted(rows):
        return set()
    return keys - set(rows.order_by().filter(pk__in=keys).values_list("pk", flat=True))


def _read_one(using: str, key: int) -> list[Node]:
    with suppress_damage():
        return read_nodes(using, [key])
    return [Node(key, DAMAGED)]


def batch_sections(page: QueueAdmin, request: HttpRequest, job: Any) -> list[Section]:
    """Return the batch of a job, and what it waits for; nothing for most jobs."""
    link = Link.of(JobMetadata.read(job.metadata).batch)
    if link is None:
        return []
    role = "callback of" if link.is_callback else "member of"
    batch = Fields("Batch", [(role.capitalize(), page.batch_link(request, link.batch_id))])
    if getattr(job, "waitingexecution", None) is None:
        return [batch]
    return [batch, _awaited(page, request, job)]


def _awaited(page: QueueAdmin, request: HttpRequest, job: Any) -> Section:
    """Return the members that have not ended of those that a job waits for."""
    using = job._state.db
    rows = Dependency.objects.using(using).filter(job_id=job.pk, state=DependencyState.OPEN)
    found = rows.order_by("pk").values_list("parent_id", "run_when")[: MOST_AWAITED + 1]
    wanted = {parent_id: run_when_of(when) for parent_id, when in found}
    nodes = seen_by(page, request, read_members(using, [*wanted][:MOST_AWAITED]))
    shown = [(*member_row(page, request, node), wanted[node.key]) for node in nodes]
    note = f"The first {MOST_AWAITED}." if len(wanted) > MOST_AWAITED else ""
    return Table("Waits for", (*HEADINGS, "Has to end by"), shown, note if shown else "Nothing.")


ORDER = Order(BatchMember, ("id",))
STATES = {state.name.lower(): state for state in MemberState}


class BatchPage:
    """The sections of the page of a batch, on a page of the admin and for a request."""

    def __init__(self, page: QueueAdmin, request: HttpRequest, row: Any) -> None:
        self.page, self.request, self.row = page, request, row
        self.using: str = row._state.db
        self.state = STATES.get(request.GET.get("members", ""))
        self.cursor = ORDER.parse(request.GET.get("p", ""))

    def sections(self, *, with_metadata: bool) -> list[Section]:
        """Return them; metadata only if the user may see them."""
        counts = self._counts()
        self.row.tally = _tally(counts)
        metadata = stored_section("Metadata", self.row.metadata) if with_metadata else None
        found = [self._fields(), metadata, _callbacks(self.row.callbacks)]
        return [each for each in [*found, *self._members(counts)] if each is not None]

    def _counts(self) -> dict[MemberState, BoundedCount]:
        members = BatchMember.objects.using(self.using).filter(batch_id=self.row.pk).order_by()
        selections = [members.filter(state=state) for state in MemberState]
        return dict(zip(MemberState, count_each(self.using, selections), strict=True))

    def _fields(self) -> Section:
        row, member = self.row, self.row.member
        outer = "" if member is None else self.page.batch_link(self.request, member.batch_id)
        return Fields(
            "Batch",
            [
                ("Status", status(row)),
                ("Kind", kind(row)),
                ("Description", texts.clean(row.description)),
                ("Progress", progress(row)),
                ("Part of batch", outer),
                ("Backend", texts.clean(row.backend_name)),
                ("Created", created(row)),
                ("Started", texts.moment(row.started_at)),
                ("Cancelled", texts.moment(row.cancelled_at)),
                ("Finished", finished(row)),
                ("Took", texts.between(row.created_at, row.finished_at)),
            ],
        )

    def _members(self, counts: dict[MemberState, BoundedCount]) -> list[Section]:
        """Return the graph, which is on the first page of all members, and a page of these."""
        is_first = self.state is None and self.cursor.key is None
        if is_first:
            picture = read_picture(self.using, self.row.pk, levels=1, read=read_members)
            nodes = seen_by(self.page, self.request, picture.nodes)
            shown = nodes[:SHOWN]
            keys = [(node.key,) for node in nodes]
            _, place = split_page(keys, self.cursor, SHOWN)
            graph = self._graph(picture, nodes)
        else:
            most = SHOWN + 1
            beyond = None if self.cursor.key is None else self.cursor.key[0]
            [ids] = members_of(
                self.using, [self.row.pk], most,
                state=self.state, beyond=beyond, backwards=self.cursor.backwards,
            ).values()  # fmt: skip
            chosen, place = split_page([(pk,) for pk in ids], self.cursor, SHOWN)
            shown = seen_by(
                self.page, self.request, read_members(self.using, [pk for (pk,) in chosen])
            )
            graph = []
        ways = (("Previous", place.previous), ("Next", place.following))
        table = Table(
            "Members",
            HEADINGS,
            [member_row(self.page, self.request, node) for node in shown],
            "" if shown else "None.",
            self._tabs(counts),
            [(label, self._url(p=str(cursor))) for label, cursor in ways if cursor is not None],
        )
        return [*graph, table]

    def _graph(self, picture: Picture, nodes: Sequence[Node]) -> list[Section]:
        """Return the graph, if there is one: members that wait for nothing have none."""
        if not picture.edges:
            return []
        note = ""
        if picture.cut:
            note = f"The first {MOST_NODES} members. The others are in the list below."
        urls = {node.key: url for node in nodes if (url := self._url_of(node))}
        return [Drawing("Graph", graph_svg(nodes, picture.edges, urls), note)]

    def _url_of(self, node: Node) -> str | None:
        if node.batch_id is not None:
            return self.page.batch_url(self.request, node.batch_id)
        return None if node.job_id is None else self.page.job_url(self.request, node.job_id)

    def _tabs(self, counts: dict[MemberState, BoundedCount]) -> list[tuple[str, str, str | None]]:
        total = BoundedCount.sum_of(counts.values())
        tabs = [("All", total.text, self._url(members="") if self.state is not None else None)]
        for name, state in STATES.items():
            if counts[state].number or state is self.state:
                url = None if state is self.state else self._url(members=name)
                tabs.append((name.capitalize(), counts[state].text, url))
        return tabs

    def _url(self, **given: str) -> str:
        kept = {"members": "" if self.state is None else self.state.name.lower(), **given}
        return databases.with_query("", kept | databases.parameters(self.request)) or "?"


def _tally(counts: dict[MemberState, BoundedCount]) -> Tally:
    well, failed = (
        BoundedCount.sum_of(counts[state] for state in states) for states in (ENDED_WELL, FAILURES)
    )
    return Tally.of(counts[MemberState.PENDING], well, failed)


def _callbacks(stored: object) -> Section | None:
    """Return the tasks that are enqueued at the end."""
    if stored is None:
        return None
    found = shown_value(stored).value
    if not isinstance(found, dict):
        return Text("Callbacks", [], UNREADABLE.format(len(str(stored))))
    jobs = [(name, found[name]) for name in NAMES if isinstance(found.get(name), dict)]
    rows = [
        (name, texts.short_path(str(job.get("task_path"))), texts.named(job.get("queue_name")))
        for name, job in jobs
    ]
    return Table("Callbacks", ("When", "Task", "Queue"), rows)
