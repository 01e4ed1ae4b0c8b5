"""The page of one batch: what it is, how far it is, its graph and its members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest

from .. import arguments
from ..arguments import DeserializationError
from ..batches.members import members_of
from ..batches.nodes import Node
from ..batches.picture import MOST_NODES, Picture, read_picture
from ..dialects import MemberState
from ..dialects.callbacks import NAMES
from ..dialects.membership import FAILURES
from ..listings.counts import BoundedCount, count_each
from ..listings.keyset import Order
from ..listings.listing import split_page
from ..listings.payloads import MOST_READ, UNREADABLE
from ..models import BatchMember
from . import databases, texts
from .base import QueueAdmin
from .batch_list import ENDED_WELL, Tally, created, finished, kind, progress, status
from .detail import Drawing, Fields, Section, Table, Text
from .graph_svg import graph_svg
from .job_texts import stored_section
from .members import HEADINGS, member_row, read_members, seen_by

#: Members on one page.
SHOWN = 50
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
    text = str(stored)  # SQLite lets a row hold something other than text.
    try:
        found: Any = arguments.decode(text, resolve_models=False) if len(text) < MOST_READ else None
    except DeserializationError:
        found = None
    if not isinstance(found, dict):
        return Text("Callbacks", [], UNREADABLE.format(len(text)))
    jobs = [(name, found[name]) for name in NAMES if isinstance(found.get(name), dict)]
    rows = [
        (name, texts.short_path(str(job.get("task_path"))), texts.named(job.get("queue_name")))
        for name, job in jobs
    ]
    return Table("Callbacks", ("When", "Task", "Queue"), rows)
