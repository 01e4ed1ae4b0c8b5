"""The values that a job's arguments refer to: results of the members that it has waited for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Any

from .. import arguments
from ..arguments import DeserializationError, ParentResult
from ..dialects import MemberState
from ..dialects.membership import CHAIN
from ..models import BatchMember, Dependency, JobBatch
from ..payloads.backends import limits_of
from ..payloads.signed_metadata import node_in
from ..tasks.metadata import NONE, JobMetadata
from ..tasks.stored_payloads import call_text, result_text
from .graph import Member
from .places import Shape, other_result, placed_in, shapes_in

#: Most members that are read at once.
MOST_READ = 1000
#: The shape of what there is no more: no job has this place.
GONE = "."


class ParentResults:
    """Reads the results of the parents of one job. ``require`` raises for a value, with references
    in place of its model instances, that the job must not be given. ``metadata``: those of the job,
    which say from where each of them comes if its call is signed."""

    def __init__(
        self,
        using: str,
        job_id: int,
        require: Callable[[Any], None],
        metadata: JobMetadata = NONE,
    ) -> None:
        self.using, self.job_id, self.require = using, job_id, require
        self._sources: Mapping[str, Any] = metadata.sources
        self._graph = (metadata.node or "").partition(".")[0]
        self._found: dict[int, Any] = {}

    def __call__(self, reference: ParentResult) -> Any:
        """Return the value that is referred to: of a group the list of its values, of a chain that
        of its last step; ``None`` for what did not succeed.

        Raises ``DeserializationError`` if it is gone, or cannot be read.
        """
        if reference.number not in self._found:
            rows = Dependency.objects.using(self.using).select_related("parent__job")
            row = rows.filter(job_id=self.job_id, number=reference.number).first()
            if row is None:
                raise DeserializationError(
                    f"The arguments refer to the result of a job, number {reference.number}, for "
                    "which this one has not waited, or which was deleted."
                )
            self._found[reference.number] = self._value(
                row.parent, self._sources.get(str(reference.number))
            )
        return self._found[reference.number]

    def _value(self, member: BatchMember, shape: Any) -> Any:
        """Return the value of a member, which has this ``shape``; ``None``: it is not known."""
        if member.state == MemberState.PENDING:
            raise DeserializationError(
                f"The arguments refer to the result of {member}, which has not ended."
            )
        batch = None
        if member.job_id is None:
            batch = JobBatch.objects.using(self.using).filter(member_id=member.pk).first()
        return self._of_job(member, shape) if batch is None else self._of_batch(batch, shape)

    def _of_batch(self, batch: JobBatch, shape: Any) -> Any:
        rows = BatchMember.objects.using(self.using).filter(batch_id=batch.pk)
        rows = rows.select_related("job")
        if batch.kind == CHAIN:
            last = rows.order_by("-pk").first()
            return None if last is None else self._value(last, shape)
        values: list[Any] = []
        shapes = None if shape is None else shapes_in(shape)
        after = 0
        while some := list(rows.filter(pk__gt=after).order_by("pk")[:MOST_READ]):
            after = some[-1].pk
            if shapes is not None and len(values) + len(some) > len(shapes):
                raise other_result()
            known = repeat(None) if shapes is None else shapes[len(values) :]
            values += [self._value(*each) for each in zip(some, known, strict=False)]
        if shapes is not None and len(values) < len(shapes):
            raise other_result()
        return values

    def _of_job(self, member: BatchMember, shape: Any) -> Any:
        if member.state != MemberState.SUCCEEDED:
            return None
        job = member.job
        if job is None or job.return_value is None:
            raise DeserializationError(
                f"The result of {member} is gone: its job was cleared before this one ran. Keep "
                "finished jobs longer, with clear_finished_jobs_after or retention."
            )
        try:
            limits, text = limits_of(job.backend_name), result_text(job)
            # Which the signature of the result covers.
            if shape is not None and node_in(job.metadata) != placed_in(self._graph, shape):
                raise other_result()
            value = arguments.decode(text, resolve_models=False, limits=limits)
            if arguments.has_models(text):
                self.require(value)
                value = arguments.decode(text, limits=limits)
        except DeserializationError as error:
            # A job that was given a forged result fails with the error that says so.
            raise type(error)(f"The result of job {job.pk} cannot be passed on: {error}") from error
        return value


def shape_of(using: str, member: Member) -> Shape:
    """Return what the value of a member is made of that was stored with another graph, as the
    signatures of its calls say. Raises ``PayloadError``."""
    known: Shape = member.shape
    if known is not None:
        return known
    return _stored_shape(_members(using).get(pk=member.member_id), using)


def _stored_shape(row: BatchMember, using: str) -> Shape:
    if row.job is not None:
        call_text(row.job)
        return node_in(row.job.metadata)
    batch = JobBatch.objects.using(using).filter(member_id=row.pk).first()
    if batch is None:
        return GONE
    rows = _members(using).filter(batch_id=batch.pk).order_by("pk")
    if batch.kind == CHAIN:
        last = rows.last()
        return GONE if last is None else _stored_shape(last, using)
    return [_stored_shape(each, using) for each in rows]


def _members(using: str) -> Any:
    return BatchMember.objects.using(using).select_related("job")
