"""The subcommands, in the order in which the help lists them."""

from __future__ import annotations

from .change_jobs import Cancel, Discard, Retry, RunNow
from .doctor import Doctor
from .jobs import Jobs
from .limits import Limits
from .metrics import Metrics
from .processes import Processes
from .queues import Queues
from .schedules import Schedules
from .show import Show
from .status import Status
from .subcommand import Subcommand

#: Beside ``start``, which the management command itself has.
SUBCOMMANDS: tuple[Subcommand, ...] = (
    Status(),
    Queues(),
    Jobs(),
    Show(),
    Retry(),
    Discard(),
    Cancel(),
    RunNow(),
    Processes(),
    Schedules(),
    Limits(),
    Metrics(),
    Doctor(),
)


def named(name: str) -> Subcommand:
    """Return the subcommand with that name."""
    return next(each for each in SUBCOMMANDS if each.name == name)
