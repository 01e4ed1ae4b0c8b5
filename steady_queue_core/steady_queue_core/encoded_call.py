"""EncodedCall: a call of a task on its way into the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .arguments import PayloadLimits
from .arguments.limits import DEEPEST
from .compat import Task
from .dialects import Limit
from .tasks.metadata import JobMetadata

if TYPE_CHECKING:
    from .schedules.values import RecurringDefinition

#: For metadata that were checked before headers, which have limits of their own, were added.
UNLIMITED = PayloadLimits(max_bytes=1 << 40, max_depth=DEEPEST)


@dataclass(slots=True)
class EncodedCall:
    """A validated call of a task, with its arguments in their stored form."""

    task: Task
    # Reports of errors show the variables of frames: not what is passed.
    args: Any = field(repr=False)
    kwargs: Any = field(repr=False)
    #: ``args`` and ``kwargs`` in their stored form.
    arguments: str = field(repr=False)
    limit: Limit | None = None
    #: What the job keeps beyond its columns, as text.
    metadata: str | None = None
    #: The batch that it is added to.
    batch_id: int | None = None
    #: Its key in a fair queue; ``None``: its queue is not fair.
    fair_key: str | None = None
    #: The most attempts of its job, if a feature says so; ``None``: as its task or backend says.
    max_attempts: int | None = None
    #: Whether its job waits for other jobs first.
    waits: bool = False
    #: The recurring task that it is a run of; ``None``: nobody's schedule asks for it.
    recurring_task: RecurringDefinition | None = None

    @property
    def recurring(self) -> str | None:
        """The key of the recurring task that it is a run of; ``None``: of none."""
        return None if self.recurring_task is None else self.recurring_task.key

    @property
    def size(self) -> int:
        """Bytes of the encoded arguments, before they are compressed, encrypted or signed."""
        return len(self.arguments)  # It is ASCII.

    @property
    def headers(self) -> dict[str, str]:
        """What middleware has given it on its way."""
        return dict(JobMetadata.read(self.metadata).headers)

    def placed(self, node: str, sources: Mapping[str, Any]) -> EncodedCall:
        """Return this call as that of a job at a place of a graph."""
        known = replace(JobMetadata.read(self.metadata), node=node, sources=sources)
        return replace(self, metadata=known.text(UNLIMITED))

    def carrying(self, headers: Mapping[str, str]) -> EncodedCall:
        """Return this call with ``headers`` for its job, beside those that it has.

        Raises ``ValueError`` for what is no dict of texts, and for too many of them.
        """
        known = JobMetadata.read(self.metadata).carrying(headers)
        return replace(self, metadata=known.text(UNLIMITED))
