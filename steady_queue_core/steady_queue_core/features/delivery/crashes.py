"""Jobs that are delivered at least once: what crashes of their processes mean."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import TooManyCrashesError
from ...printable import LONGEST_PATH, bounded
from ..attempt_ending import AttemptEnding
from ..meaning import EndedJob, Meaning
from .options import AT_LEAST_ONCE

FINAL = (TooManyCrashesError,)
FORGOTTEN = {"crashes": ()}


def lost(error: BaseException, process: str, job: EndedJob) -> Meaning | None:
    """Return what it means that an attempt was lost with its ``process``: no attempt is counted,
    but a crash."""
    if job.metadata.delivery != AT_LEAST_ONCE:
        return None
    crashes = (*job.metadata.crashes, bounded(process, LONGEST_PATH))
    most = job.metadata.max_crashes or job.settings.max_crashes
    if len(crashes) >= most:
        return Meaning(_poison(crashes, error), AttemptEnding.FAILED)
    return Meaning(error, AttemptEnding.RETRIED, changes={"crashes": crashes})


def _poison(crashes: Sequence[str], error: BaseException) -> TooManyCrashesError:
    """Return the error of a job that has taken these processes along, the last one by ``error``."""
    times = "once" if len(crashes) == 1 else f"{len(crashes)} times"
    poison = TooManyCrashesError(
        f"The job was running {times} when its process ended, as often as it may: "
        f"{'; '.join(crashes)}."
    )
    poison.__cause__ = error
    return poison
