"""The pages of the admin, each by a line: a new page needs one more.

``test_every_page_is_walked`` fails for a page that is not here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.http import urlencode

from .situation import LONG, Situation
from .tab import Tab


@dataclass(frozen=True)
class Place:
    """A page: of a model of ours, and of a row that ``Situation.known`` names, if it is one."""

    title: str
    model: str
    page: str = "changelist"
    of: str = ""
    query: dict[str, str] = field(default_factory=dict)
    #: The button that leads there from the page.
    button: str = ""
    #: The action that leads there from the list, with all rows ticked.
    action: str = ""

    @property
    def route(self) -> str:
        """The name of the address."""
        return f"steady_queue_{self.model}_{self.page}"

    @property
    def is_list(self) -> bool:
        is_shown = not (self.action or self.button) and self.model != "overview"
        return is_shown and self.page == "changelist"

    def url(self, situation: Situation) -> str:
        row = [quote(situation.known[self.of])] if self.of else []
        address = reverse(f"admin:{self.route}", args=row)
        return f"{address}?{urlencode(self.query)}" if self.query else address

    def visit(self, tab: Tab, situation: Situation) -> None:
        """Go there."""
        tab.open(self.url(situation))
        if self.action:
            tab.tick_all()
            tab.choose(self.action)
        if self.button:
            tab.press(self.button)

    def __str__(self) -> str:
        return self.title.replace(" ", "-")


def lists_of_jobs() -> list[Place]:
    states = ("ready", "scheduled", "blocked", "waiting", "running", "failed", "finished")
    return [Place(f"{state} jobs", "job", query={"state": state}) for state in states]


def pages_of(model: str, *known: str, page: str = "change") -> list[Place]:
    return [Place(f"{page} {each}", model, page, each) for each in known]


PLACES = (
    Place("overview", "overview"),
    Place("overview of a day", "overview", query={"window": "24h"}),
    Place("overview of a queue", "overview", query={"queue": LONG, "window": "7d"}),
    Place("jobs", "job"),
    *lists_of_jobs(),
    Place("jobs found", "job", query={"q": "deliver"}),
    Place("error groups", "job", "errors"),
    Place("error groups of a queue", "job", "errors", query={"queue": LONG}),
    *pages_of("job", "failed", "running", "finished", "blocked", "scheduled", "ready", "long"),
    *pages_of("job", "failed", page="history"),
    Place("recent actions", "job", "acts"),
    Place("moving a job", "job", "change", "scheduled", button="Move"),
    Place("rescheduling a job", "job", "change", "scheduled", button="Reschedule"),
    Place("copying a job", "job", "change", "finished", button="Enqueue again"),
    Place("discarding a job", "job", "change", "failed", button="Discard"),
    Place("discarding jobs", "job", query={"state": "failed"}, action="Discard selected jobs"),
    Place("batches", "jobbatch"),
    *pages_of("jobbatch", "batch", "workflow", "cancelled batch"),
    *pages_of("jobbatch", "batch", page="history"),
    Place("cancelling a batch", "jobbatch", "change", "workflow", button="Cancel"),
    Place("queues", "pause"),
    *pages_of("pause", "queue", "long queue"),
    *pages_of("pause", "queue", page="history"),
    Place("clearing a queue", "pause", "change", "long queue", button="Clear"),
    Place("processes", "process"),
    *pages_of("process", "process", "long process"),
    *pages_of("process", "process", page="history"),
    Place("ended processes", "processend"),
    *pages_of("processend", "end", "long end"),
    *pages_of("processend", "end", page="history"),
    Place("rate limits", "rate"),
    *pages_of("rate", "rate", "long rate"),
    *pages_of("rate", "rate", page="history"),
    Place("recurring tasks", "recurringtask"),
    *pages_of("recurringtask", "schedule", "long schedule", "dynamic schedule"),
    *pages_of("recurringtask", "schedule", page="history"),
    Place("add recurring task", "recurringtask", "add"),
    *pages_of("recurringtask", "dynamic schedule", page="edit"),
    *pages_of("recurringtask", "dynamic schedule", page="delete"),
    Place("semaphores", "semaphore"),
    *pages_of("semaphore", "semaphore", "long semaphore"),
    *pages_of("semaphore", "semaphore", page="history"),
    Place("shares", "share"),
    Place("add share", "share", "add"),
    *pages_of("share", "share", "long share"),
    *pages_of("share", "share", page="history"),
    *pages_of("share", "long share", page="delete"),
)

#: Addresses that are no pages: what buttons post to, and what Django has for every model, but
#: nobody may use here.
NO_PAGES = {
    "steady_queue_job_export": "a file",
    **{
        f"steady_queue_{model}_{verb}": "a button"
        for model, verbs in {
            "job": ("retry", "run", "cancel", "discard", "move", "reschedule", "copy"),
            "jobbatch": ("cancel", "retry"),
            "pause": ("pause", "resume", "clear"),
            "recurringtask": ("run", "disable", "enable"),
        }.items()
        for verb in verbs
    },
    **{
        f"steady_queue_{model}_{page}": "nobody may"
        for model in (
            "job", "jobbatch", "pause", "process", "processend", "rate", "semaphore",
        )
        for page in ("add", "delete")
    },
}  # fmt: skip


def keys_of_rows(known: dict[str, Any]) -> dict[str, Any]:
    """Return the primary keys whose history is looked at, by model."""
    return {place.model: known[place.of] for place in PLACES if place.page == "history"}
