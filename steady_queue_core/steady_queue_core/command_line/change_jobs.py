"""What the acts on jobs have in common: which jobs, asking, and what has become of them."""

from __future__ import annotations

from abc import abstractmethod
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..errors import SteadyQueueError
from ..listings.selection import Selection
from ..listings.states import ALL, FAILED, STATES, State
from ..models import Job
from ..models.execution import Execution
from ..models.job_queryset import JobQuerySet
from .batched import COUNTED, add_batch_options, apply, report
from .context import Context
from .databases import described
from .exit_codes import DONE, NOT_FOUND, WRONG_USAGE, Refusal
from .exit_codes import FAILED as FAILURE
from .formats import in_words
from .job_filter import add_filters, failure_option, is_narrowed, listing_of
from .job_ids import JobId
from .job_summary import state_name
from .question import confirm
from .show import read
from .subcommand import Subcommand


class ChangeJobs(Subcommand):
    """An act on jobs that are named by their ids, or chosen by options."""

    #: As in "would be ...", and as the first word of a sentence.
    past: ClassVar[str]
    #: The states of jobs that it applies to, in the order in which jobs pass through them; empty:
    #: all of them.
    executions: ClassVar[Sequence[type[Execution]]] = ()
    #: What is lost by it; empty: nothing, and nobody is asked.
    warning: ClassVar[str] = ""
    #: Whether it changes the places of jobs in lists.
    reorders: ClassVar[bool] = False
    #: Whether even jobs that are named by their ids are asked about.
    asks_always: ClassVar[bool] = False

    @abstractmethod
    def on_many(self, jobs: JobQuerySet[Job]) -> int:
        """Do it to jobs; return how many were in a suitable state."""

    @abstractmethod
    def on_one(self, job: Job) -> bool:
        """Do it to a job; return whether that was in a suitable state."""

    def configure(self, options: Mapping[str, Any], using: str) -> None:
        """Keep what the options say of it. Raises ``Refusal``."""

    @property
    def states(self) -> list[State]:
        """The states of jobs that it applies to."""
        if not self.executions:
            return [state for state in STATES.values() if state.name]
        by_model = {state.order.model: state for state in STATES.values() if state.relation}
        return [by_model[each] for each in self.executions]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("ids", nargs="*", type=JobId.read, metavar="ID", help="ids of jobs")
        add_filters(parser, tuple(state.name for state in self.states))
        parser.add_argument("--all", action="store_true", help="all jobs that it applies to")
        add_batch_options(parser)

    def run(self, context: Context) -> int:
        options = context.options
        ids, chosen = options["ids"], is_narrowed(options) or options["all"]
        if bool(ids) == bool(chosen):
            raise Refusal(
                f"Say which jobs: {self.name} takes either ids, or options such as --queue and "
                "--task, or --all.",
                WRONG_USAGE,
            )
        using = context.databases.to_change()
        act = copy(self)
        act.configure(options, using)
        if ids:
            return act._change_each(context, using, list(dict.fromkeys(ids)))
        return act._change_all(context, using)

    # --- jobs by their ids ---

    def _change_each(self, context: Context, using: str, ids: list[int]) -> int:
        dry = context.options["dry_run"]
        found = read(using, ids)
        if found and self.asks_always and not dry:
            confirm(context, self._question(in_words(len(found))))
        tally = Tally(self, dry)
        for job_id in ids:
            if job_id in found:
                tally.add(using, job_id, found[job_id])
            else:
                tally.missing.append(f"There is no job {job_id}.")
        data = {**self._described(using, dry), "count": len(tally.changed), "jobs": tally.changed}
        verb = f"would be {self.past}" if dry else self.past
        lines = [f"Job {job_id}: {verb}." for job_id in tally.changed]
        context.show(data, lines, [*tally.missing, *tally.left_alone])
        return NOT_FOUND if tally.missing else FAILURE if tally.left_alone else DONE

    # --- jobs by options ---

    def _change_all(self, context: Context, using: str) -> int:
        listings = [listing_of(context.options, using, state) for state in self._states(context)]
        selection = Selection.until_now(using, listings, by_id=self.reorders)
        dry, count = context.options["dry_run"], selection.count(COUNTED)
        words = in_words(count.number, count.text)
        data = self._described(using, dry)
        if dry:
            data |= {"count": count.number, "exact": count.exact}
            context.show(data, [f"{words} would be {self.past}."])
            return DONE
        if self.warning and (count.number or not count.exact):
            confirm(context, self._question(words))
        size = context.options["batch_size"]
        words = self.past.capitalize()
        outcome = apply(context, words, self.on_many, selection, size, count)
        return report(context, data, words, outcome)

    def _states(self, context: Context) -> Sequence[State]:
        is_of_failed = failure_option(context.options) is not None
        wanted = FAILED.name if is_of_failed else context.options["state"]
        if wanted is None and not self.executions:
            return [ALL]  # Once: a job that goes on would be met in several states.
        return [state for state in self.states if wanted in (None, state.name)]

    def _described(self, using: str, dry: bool) -> dict[str, Any]:
        return {**described(using), "action": self.name, "dry_run": dry}

    def _question(self, jobs: str) -> str:
        verb = self.name.replace("-", " ").capitalize()
        return f"{verb} {jobs}? {self.warning}"


@dataclass
class Tally:
    """What becomes of jobs that are named by their ids."""

    act: ChangeJobs
    dry: bool
    changed: list[int] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    left_alone: list[str] = field(default_factory=list)

    def add(self, using: str, job_id: int, job: Any) -> None:
        """Do it to one job."""
        state = state_name(job) if job is not None else ""
        applies = job is None or state in [each.name for each in self.act.states]
        try:
            if self.dry:
                done = applies
            else:
                row = Job(pk=job_id)
                row._state.db = using
                done = self.act.on_one(row)
        except SteadyQueueError as error:
            self.left_alone.append(str(error))
            return
        if done:
            self.changed.append(job_id)
        else:
            seen = f"it is {state}" if state and not applies else "it has changed its state"
            self.left_alone.append(f"Job {job_id} cannot be {self.act.past}: {seen}.")
