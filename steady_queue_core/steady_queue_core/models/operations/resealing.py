"""Payloads of jobs whose queue or rank changes. Signatures cover these: they are made again, where
those that there are hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet

from ...dialects.database import Database
from ...payloads import PayloadCodec, PayloadError, call_scope, checkpoint_scope, step_scope
from ...payloads.backends import codec_of
from ..checkpoint import Checkpoint
from ..execution import ReadyExecution
from ..step import Step
from .rows import write_own_values


@dataclass
class Resealed:
    """The payloads of jobs, as they are to be stored."""

    #: The arguments, and the tokens of those that are ready, by the ids of the jobs.
    arguments: dict[int, str] = field(default_factory=dict)
    tokens: dict[int, int] = field(default_factory=dict)
    #: The data of checkpoints, by the ids of the jobs; those of steps, by their own.
    checkpoints: dict[int, str] = field(default_factory=dict)
    steps: dict[int, str] = field(default_factory=dict)
    #: The jobs with a payload that is not what it says.
    refused: set[int] = field(default_factory=set)

    def store_notes(self, using: str) -> None:
        """Store the data of checkpoints and steps."""
        write_own_values(Checkpoint.objects.using(using), "data", self.checkpoints)
        write_own_values(Step.objects.using(using), "data", self.steps)


def resealed(
    jobs: QuerySet[Any], waiting: Mapping[int, Any], changes: Mapping[str, Any]
) -> Resealed:
    """Return the payloads of jobs that are to get other values; nothing of those without a codec.

    ``waiting``: their locked executions.
    """
    done = Resealed()
    names = dict(jobs.filter(pk__in=list(waiting)).values_list("pk", "backend_name"))
    codecs = {name: codec_of(name) for name in set(names.values())}
    sealing = [pk for pk, name in names.items() if codecs[name] is not None]
    if not sealing:
        return done
    # Locked, to see what is newer than the snapshot of a caller's transaction: what is read here is
    # written again.
    found = Database.of(jobs.db).lock_rows(jobs.filter(pk__in=sealing).order_by("pk"), wait=True)
    notes = _notes(jobs.db, sealing) if "queue_name" in changes else {}
    for job in found:
        codec = codecs[job.backend_name]
        assert codec is not None
        try:
            _reseal(done, codec, job, changes, notes.get(job.pk, ()))
        except PayloadError:
            done.refused.add(job.pk)
            continue
        row = waiting[job.pk]
        if isinstance(row, ReadyExecution):
            done.tokens[job.pk] = row.token + 1
    for pk in done.refused:
        done.arguments.pop(pk, None)
    return done


def _reseal(
    done: Resealed,
    codec: PayloadCodec,
    job: Any,
    changes: Mapping[str, Any],
    notes: Collection[Any],
) -> None:
    after = copy(job)
    for name, value in changes.items():
        setattr(after, name, value)

    def renewed(stored: str, scope: Any) -> str:
        return codec.seal(codec.open(stored, scope(job)), scope(after))

    checkpoints, steps = dict[int, str](), dict[int, str]()
    arguments = renewed(job.arguments, lambda of: call_scope(of, of.concurrency_key))
    for note in notes:
        if isinstance(note, Checkpoint):
            checkpoints[note.pk] = renewed(note.data, lambda of: checkpoint_scope(of, of.pk))
        else:
            steps[note.pk] = renewed(note.data, _scope_of(note))
    done.arguments[job.pk] = arguments
    done.checkpoints |= checkpoints
    done.steps |= steps


def _scope_of(step: Any) -> Any:
    return lambda of: step_scope(of, of.pk, step.name, is_sleep=bool(step.is_sleep))


def _notes(using: str, job_ids: Collection[int]) -> dict[int, list[Any]]:
    """Return the checkpoints and steps of jobs, locked."""
    database = Database.of(using)
    found: dict[int, list[Any]] = {}
    checkpoints = Checkpoint.objects.using(using).filter(pk__in=job_ids).order_by("pk")
    for row in database.lock_rows(checkpoints, wait=True):
        if row.data is not None:
            found.setdefault(row.pk, []).append(row)
    steps = Step.objects.using(using).filter(job_id__in=job_ids).order_by("job_id", "name")
    for step in database.lock_rows(steps, wait=True):
        found.setdefault(step.job_id, []).append(step)
    return found
