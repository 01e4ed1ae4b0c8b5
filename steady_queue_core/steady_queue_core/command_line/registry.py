"""The subcommands, in the order in which the help lists them."""

from __future__ import annotations

from .clear import Clear
from .completion import Completion
from .doctor import Doctor
from .enqueue import Enqueue
from .errors import Errors
from .health import Health
from .job_acts import Cancel, Copy, Discard, Move, Reschedule, Retry, RunNow
from .jobs import Jobs
from .limits import Limits
from .metrics import Metrics
from .pausing import Pause, Resume
from .processes import Processes
from .queues import Queues
from .schedules import Schedules
from .show import Show
from .status import Status
from .subcommand import Subcommand
from .take_over import TakeOver
from .watch import Watch

#: Beside ``start``, which the management command itself has.
SUBCOMMANDS: tuple[Subcommand, ...] = (
    Status(),
    Queues(),
    Jobs(),
    Show(),
    Errors(),
    Retry(),
    Discard(),
    Cancel(),
    RunNow(),
    Move(),
    Reschedule(),
    Copy(),
    Enqueue(),
    Pause(),
    Resume(),
    Processes(),
    Schedules(),
    Limits(),
    Metrics(),
    Doctor(),
    Clear(),
    Watch(),
    Health(),
    TakeOver(),
    Completion(),
)


def named(name: str) -> Subcommand:
    """Return the subcommand with that name, or that had it."""
    return next(each for each in SUBCOMMANDS if name in (each.name, each.former))
