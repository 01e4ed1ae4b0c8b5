"""The jobs of a list at the moment at which an action on all of them was confirmed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ..dialects import portable
from ..dialects.database import Database
from ..listings.argument_search import ArgumentSearch
from ..listings.job_listing import JobListing
from ..listings.period import Period
from ..listings.selection import newest_id
from ..listings.states import ALL, FINISHED, STATES, State
from ..listings.visibility import VisibleJobs
from ..models import Job
from .job_actions import JobAction


@dataclass(frozen=True)
class JobList:
    """The jobs in a state that match filters and a search, without those that came later."""

    using: str
    state: State
    given: Mapping[str, str]
    search: str
    #: A text in the arguments; ``""``: any.
    arguments: str
    #: From when on and before when they have ended or were enqueued.
    since: datetime | None
    until: datetime | None
    #: The id of the last job, and the database's time.
    last: int
    moment: datetime

    @classmethod
    def of(cls, listing: JobListing) -> JobList:
        """Return the jobs that a listing has now."""
        using = listing.using
        moment = Database.of(using).current_time()
        return cls(
            using,
            listing.state,
            listing.given,
            listing.search,
            listing.arguments.text if listing.arguments else "",
            *listing.period.instants,
            newest_id(using),
            moment,
        )

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> JobList:
        """Return what ``stored`` has given to a job."""
        return cls(
            str(stored["database"]),
            STATES[stored["state"]],
            {str(name): str(value) for name, value in stored["given"].items()},
            str(stored["search"]),
            str(stored["arguments"]),
            stored["since"],
            stored["until"],
            int(stored["last"]),
            stored["moment"],
        )

    @property
    def stored(self) -> dict[str, Any]:
        """All of it as an argument of a task."""
        return {
            "database": self.using,
            "state": self.state.name,
            "given": dict(self.given),
            "search": self.search,
            "arguments": self.arguments,
            "since": self.since,
            "until": self.until,
            "last": self.last,
            "moment": self.moment,
        }

    @property
    def words(self) -> str:
        """What is selected, for the log."""
        given = {**self.given, "search": self.search}
        # Others may read the log who must not see arguments.
        given["arguments"] = "with a text" if self.arguments else ""
        given |= {"since": _told(self.since), "until": _told(self.until)}
        narrowed = "".join(f", {name} {value}" for name, value in given.items() if value)
        kind = f"{self.state.name} jobs" if self.state.name else "jobs"
        return f"all selected {kind}{narrowed}"

    def among(self, listing: JobListing, action: JobAction | None = None) -> JobListing:
        """Return a listing without the jobs that came later, for an action on them."""
        reorders = action is not None and action.reorders
        period = Period(self.since, self.until)
        return replace(listing, last=self.last, period=period, by_id=reorders)

    def listing(self, action: JobAction) -> JobListing:
        """Return the listing of these jobs for somebody who may see all."""
        visible = VisibleJobs(Job.objects.using(self.using))
        listing = JobListing(
            visible,
            self.state,
            dict(self.given),
            self.search,
            ArgumentSearch(self.arguments) if self.arguments else None,
        )
        return self.among(listing, action)

    def still(self, ids: Sequence[int]) -> list[int]:
        """Return those of these jobs that have been in the state ever since."""
        if self.state is ALL:
            return list(ids)
        column = "finished_at" if self.state is FINISHED else "created_at"
        rows = self.state.selected(self.using).filter(pk__in=ids).order_by()
        since = rows.filter(**{f"{column}__lte": portable.storable(self.moment)})
        found = set(since.values_list("pk", flat=True))
        return [each for each in ids if each in found]


def _told(instant: datetime | None) -> str:
    return "" if instant is None else instant.isoformat(" ", "seconds")
