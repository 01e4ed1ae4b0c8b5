"""What a job has to do with a batch, in the terms that the core and the dialects share."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from .. import arguments
from ..features.batches.link import NAME, Link
from ..features.entries import UNLIMITED


class MemberState(IntEnum):
    """What has become of a member of a batch."""

    PENDING = 0
    SUCCEEDED = 1
    FAILED = 2
    CANCELLED = 3
    #: Its job was deleted before it ran, by somebody who did not want it. That is no failure, but
    #: what was to follow its success fails.
    DISCARDED = 4
    #: It was to run only after a failure, or after one that was to, and nothing has failed.
    SKIPPED = 5


#: The states of members that make a batch fail.
FAILURES = (MemberState.FAILED, MemberState.CANCELLED)

#: What batches are made as, in which each member counts: if one is skipped, so is the whole, and
#: likewise if one is discarded.
CHAIN, GROUP, WORKFLOW = "chain", "group", "workflow"
SEQUENCES = (CHAIN, GROUP)


class RunWhen(IntEnum):
    """How the member has to end that a job waits for."""

    SUCCESS = 0
    FAILURE = 1
    FINISHED = 2

    def is_met_by(self, state: MemberState) -> bool:
        """Whether the job goes on after this end. One that was discarded or skipped has neither
        succeeded nor failed."""
        if self is RunWhen.FINISHED:
            return True
        return state is MemberState.SUCCEEDED if self is RunWhen.SUCCESS else state in FAILURES

    def after(self, state: MemberState) -> DependencyState:
        """Return what the dependency is after this end of the member."""
        if self.is_met_by(state):
            return DependencyState.MET
        has_failed = self is RunWhen.SUCCESS and state is not MemberState.SKIPPED
        return DependencyState.FAILED if has_failed else DependencyState.UNMET


class DependencyState(IntEnum):
    """Whether a member has ended that a job waits for, and as it had to."""

    OPEN = 0
    MET = 1
    #: The member has ended otherwise, and this is no failure of what waited.
    UNMET = 2
    #: The member was to succeed, and has failed, was cancelled or discarded. Stored, as it may be
    #: retried.
    FAILED = 3


#: The states after which a job is not to run.
UNMET_STATES = (DependencyState.UNMET, DependencyState.FAILED)


def linked(metadata: str | None, link: Link) -> str:
    """Return the metadata of a job with this link added.

    Raises ``DeserializationError`` if they are damaged.
    """
    known: Any = {} if metadata is None else arguments.decode(metadata, resolve_models=False)
    return arguments.encode({**known, NAME: link.stored}, limits=UNLIMITED, root="metadata")


def relinked(metadata: str | None, link: Link | None) -> str | None:
    """Return the metadata of a job with this link in place of its own.

    Raises ``DeserializationError`` if they are damaged.
    """
    if Link.read(metadata) == link:
        return metadata
    if link is not None:
        return linked(metadata, link)
    known: Any = arguments.decode(str(metadata), resolve_models=False)
    del known[NAME]
    return arguments.encode(known, limits=UNLIMITED, root="metadata") if known else None
